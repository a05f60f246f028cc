"""Forms become bodies: numbers, lists and entries by name, files in their places."""

from typing import Any

import pytest

from gateway.contract.inputs import Media
from gateway.errors import InvalidRequest
from gateway.http.multipart import Form
from gateway.http.openai.forms import body_of
from gateway.http.openai.media_bodies import ImageBody, ImageEditBody, TranscriptionBody, VideoBody

IMAGE = Media(blob="a", media_type="image/png", size_bytes=1)
OTHER = Media(blob="b", media_type="image/png", size_bytes=1)


def form(*fields: tuple[str, str], files: list[tuple[str, Media]] | None = None) -> Form[Media]:
    return Form(list(fields), files or [], b"")


def edited(*fields: tuple[str, str], files: list[tuple[str, Media]]) -> ImageEditBody:
    return body_of(form(("model", "m"), *fields, files=files), ImageEditBody, {"image[]": "image"})


def test_text_becomes_what_the_field_holds() -> None:
    body = edited(("n", "2"), ("stream", "true"), ("strength", "0.5"), ("prompt", "1"), files=[("image", IMAGE)])
    assert (body.n, body.stream, body.strength, body.prompt, body.image) == (2, True, 0.5, "1", IMAGE)


@pytest.mark.parametrize("names", [("image", "image"), ("image[]", "image[]"), ("image[]", "image")])
def test_a_name_that_comes_again_stands_for_a_list(names: tuple[str, str]) -> None:
    assert edited(files=[(names[0], IMAGE), (names[1], OTHER)]).image == [IMAGE, OTHER]


def test_brackets_are_lists_and_entries() -> None:
    body = body_of(
        form(
            ("model", "m"),
            ("timestamp_granularities[]", "word"),
            ("timestamp_granularities[]", "segment"),
            ("metadata[order]", "7"),
            files=[("file", IMAGE)],
        ),
        TranscriptionBody,
        {"file": "file"},
    )
    assert body.timestamp_granularities == ["word", "segment"]
    assert body.metadata == {"order": "7"}


def test_what_no_form_has_is_left_for_the_model_to_know() -> None:
    body = body_of(form(("model", "m"), ("prompt", "x"), ("wings", "2"), ("extra[legs]", "6")), ImageBody, {})
    assert body.extra == {"wings": "2", "legs": "6"}


def test_a_file_may_stand_under_another_name() -> None:
    files = [("input_reference", IMAGE)]
    body = body_of(form(("model", "m"), files=files), VideoBody, {"input_reference": "image"})
    assert (body.image, body.input_reference) == (IMAGE, None)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ([("n", "two")], "n"),
        ([("metadata", "x"), ("metadata[a]", "b")], "metadata"),
        ([("size", "big")], "size"),
    ],
)
def test_what_does_not_fit_is_named(fields: list[Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        edited(*fields, files=[("image", IMAGE)])
    assert refused.value.param == param
