"""What the fields of one body may mean."""

from typing import Any

import pytest

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import ImageToVideoInput, Media, TalkingHeadInput, VideoInput
from gateway.errors import InvalidRequest
from gateway.http.openai.images import ONE_IMAGE
from gateway.http.openai.media_bodies import RemixBody
from gateway.http.openai.offers import fitting, needed, offers_of
from gateway.http.openai.video_calls import remix_offers


@pytest.mark.parametrize(
    ("given", "tasks"),
    [
        ({"image": "a", "prompt": "b"}, ["image-edit", "image-restyle", "image-relight", "image-upscale"]),
        ({"image": "a"}, ["image-relight", "image-upscale"]),
        ({"image": "a", "prompt": "b", "mask": "c"}, ["image-edit"]),
        ({"image": "a", "scale": 2}, ["image-upscale"]),
    ],
)
def test_a_body_means_every_task_that_takes_all_its_fields(given: dict[str, Any], tasks: list[str]) -> None:
    assert [task for task, _ in offers_of(given, ONE_IMAGE)] == tasks


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"prompt": "b"}, "image"),
        ({"image": "a", "mask": "b"}, "prompt"),
        ({"image": "a", "mask": "b", "scale": 2}, "mask"),
    ],
)
def test_the_field_that_is_missing_or_too_much_is_named(given: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        offers_of(given, ONE_IMAGE)
    assert refused.value.param == param


def test_limits_of_the_task_hold_for_a_field_that_came_by_another_name() -> None:
    with pytest.raises(InvalidRequest) as refused:
        fitting([("talking-head", {"image": "a", "text": "x" * 20_001})])
    assert refused.value.param == "text"


def test_what_a_task_needs_is_read_off_its_input() -> None:
    assert needed("image-edit") == {"prompt", "image"}
    assert needed("talking-head") == {"image"}


def test_a_remix_keeps_size_length_and_seed() -> None:
    video = MediaOutput("video/mp4", 9, blob="v", width=64, height=48, duration_ms=1_500, frames=12, seed=7)
    image = Media(blob="a", media_type="image/jpeg", size_bytes=1)
    asked = RemixBody(prompt="at night")
    alike = {"size": "64x48", "seed": 7, "fps": 8}
    assert remix_offers("text-to-video", video, None, asked) == (
        ("text-to-video", VideoInput(prompt="at night", frames=12, **alike)),  # type: ignore[arg-type]
    )
    assert remix_offers("image-to-video", video, image, asked) == (
        ("image-to-video", ImageToVideoInput(prompt="at night", image=image, frames=12, **alike)),  # type: ignore[arg-type]
    )
    assert remix_offers("talking-head", video, image, asked) == (
        ("talking-head", TalkingHeadInput(text="at night", image=image, **alike)),  # type: ignore[arg-type]
    )
    with pytest.raises(InvalidRequest):
        remix_offers("video-upscale", video, None, asked)
