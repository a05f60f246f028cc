"""Templates of a step's input: what stands for itself, what refers to something, and what is left out."""

from typing import Any

import pytest

from gateway.contract.events import (
    Choice,
    GalleryOutput,
    MediaOutput,
    Output,
    TextOutput,
    TranscriptOutput,
    VectorOutput,
)
from gateway.contract.inputs import Media, TalkingHeadInput
from gateway.contract.workflow import Reference, parse_template, steps_in
from workers.engines.workflow.values import fill, of_input, of_output

GIVEN = TalkingHeadInput(
    image=Media(blob="i", media_type="image/png", size_bytes=5, width=8, height=6), text="Hi.", fps=9
)
MADE: dict[str, Output] = {
    "story": TextOutput([Choice("Once."), Choice("Twice.")]),
    "heard": TranscriptOutput("Said."),
    "drawn": GalleryOutput([MediaOutput("image/png", 3, blob=blob, width=8, height=6) for blob in ("x", "y")]),
    "film": GalleryOutput(
        [MediaOutput("image/jpeg", 1, blob="t", role="thumbnail"), MediaOutput("video/mp4", 4, blob="v")]
    ),
    "near": VectorOutput([b""], 0),
}  # fmt: skip


async def filled(template: Any) -> Any:
    async def find(reference: Reference) -> Any:
        if reference.source == "input":
            return of_input(GIVEN, reference.path)
        return of_output(MADE[reference.source], reference.path[0])

    return await fill(parse_template(template), find)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("plain", "plain"),
        (3, 3),
        (None, None),
        ("$5 and $$", "$5 and $"),
        ("$${input.text}", "${input.text}"),
        ("$input.text", "Hi."),
        ("$input.fps", 9),
        ("$input.image.size", "8x6"),
        ("$input.image.duration_s", None),
        ("$input.audio", None),
        ("$input.audio.duration_s", None),
        ("$input.audio | $input.text", "Hi."),
        ("$input.audio.duration_s | $near.duration_s | $input.fps", 9),
        ("$story.text", "Once."),
        ("$heard.text", "Said."),
        ("$near.text", None),
        ("$drawn.width", 8),
        ("$drawn.frames", None),
        ("$near.items", None),
        ("Say ${story.text} ${input.voice}!", "Say Once. !"),
        ("${input.voice | input.text}", "Hi."),
        ({"a": "$input.voice", "b": ["$input.voice", "$input.fps"]}, {"b": [9]}),
        ({"c": {"d": "${heard.text}"}}, {"c": {"d": "Said."}}),
    ],
)  # fmt: skip
async def test_a_template_is_filled_in(template: Any, value: Any) -> None:
    assert await filled(template) == value


async def test_files_become_the_media_of_an_input_without_their_thumbnails() -> None:
    assert await filled("$film.media") == {"blob": "v", "media_type": "video/mp4", "size_bytes": 4}
    assert [one["blob"] for one in await filled("$drawn.items")] == ["x", "y"]
    assert (await filled("$drawn.media"))["blob"] == "x"


@pytest.mark.parametrize(
    "template", ["$text", "$Input.text", "$input.text and more", "${text}", "x ${input.text", "$a.b|c"]
)
def test_what_seems_to_refer_to_something_and_does_not_is_an_error(template: str) -> None:
    with pytest.raises(ValueError, match=r"^\$"):
        parse_template({"deep": [template]})


def test_the_steps_of_a_template_are_known() -> None:
    template = {"a": "$one.media | $input.audio", "b": [{"c": "${two.text}"}], "d": "$$three.text"}
    assert steps_in(parse_template(template)) == {"one", "two"}
