"""Images, drawn and edited."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.contract.events import GalleryOutput, MediaOutput, Output
from gateway.contract.inputs import (
    ImageBlendInput,
    ImageEditInput,
    ImageInput,
    ImageRelightInput,
    ImageRestyleInput,
    MediaSource,
)
from gateway.contract.inputs.image import MAX_IMAGES
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.fields import wire
from workers.engines.upstream.link import FormFile
from workers.engines.upstream.media import media_type_of
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.protocols.openai.usage import cost_in, count

FIELDS = {
    name: name
    for name in (
        "prompt",
        "n",
        "size",
        "quality",
        "style",
        "background",
        "moderation",
        "output_format",
        "output_compression",
        "input_fidelity",
        "negative_prompt",
        "seed",
    )
}
MOST_BYTES = 256 * 1024 * 1024
"""Of an answer: ten images in Base64."""

Editing = ImageEditInput | ImageBlendInput | ImageRelightInput | ImageRestyleInput


class _Picture(msgspec.Struct):
    b64_json: str | None = None
    url: str | None = None


class _Pictures(msgspec.Struct):
    data: list[_Picture]
    usage: msgspec.Raw = msgspec.Raw(b"")


class Drawing:
    """Images from words, and from images and words."""

    async def perform(self, call: Call) -> Output:
        """Call, and take the images from the answer or from where they lie."""
        given = call.run.input
        body = {"model": call.target.model} | wire(call, FIELDS)
        if isinstance(given, ImageInput):
            answer = await call.link.call("POST", "/images/generations", json=body, limit_bytes=MOST_BYTES)
        else:
            assert isinstance(given, ImageEditInput | ImageBlendInput | ImageRelightInput | ImageRestyleInput)
            files = await _files(call, given)
            answer = await call.link.form(
                "/images/edits", fields=form_fields(body), files=files, limit_bytes=MOST_BYTES
            )
        call.cost_nanos = cost_in(answer.headers)
        return await _gallery(call, answer, len(given.prompt or ""))


async def _gallery(call: Call, answer: Answer, prompt_chars: int) -> GalleryOutput:
    try:
        read = msgspec.json.decode(answer.body, type=_Pictures)
    except (msgspec.DecodeError, RecursionError):
        raise unreadable("an answer without images") from None
    if not 1 <= len(read.data) <= MAX_IMAGES:
        raise unreadable(f"an answer with {len(read.data)} images")
    items: list[MediaOutput] = []
    for picture in read.data:
        if picture.b64_json:
            items.append(await call.parcels.decoded(picture.b64_json, kind="image"))
        elif picture.url:
            items.append(await call.parcels.fetch(picture.url, kind="image"))
        else:
            raise unreadable("an image that is neither here nor anywhere")
    if read.usage and bytes(read.usage) != b"null":
        count(call, read.usage, sent_chars=prompt_chars, came_chars=0)
        call.estimated = False
    return GalleryOutput(items)


async def _files(call: Call, given: Editing) -> list[FormFile]:
    sources = given.images if isinstance(given, ImageBlendInput) else [given.image]
    name = "image[]" if len(sources) > 1 else "image"
    files = [await form_file(call, name, source, number) for number, source in enumerate(sources)]
    mask = given.mask if isinstance(given, ImageEditInput) else None
    return files if mask is None else [*files, await form_file(call, "mask", mask, len(files))]


async def form_file(call: Call, field: str, source: MediaSource, number: int = 0) -> FormFile:
    """Read a file of the caller for a form, under a name that says nothing."""
    media_type = media_type_of(source)
    ending = {"audio/mpeg": "mp3", "video/quicktime": "mov"}.get(media_type, media_type.partition("/")[2])
    return FormFile(field, f"file{number}.{ending}", await call.parcels.content(source), media_type)


def form_fields(body: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Write fields as a form has them: texts, and lists of texts."""
    return {
        name: [_text(each) for each in value] if isinstance(value, list) else _text(value)
        for name, value in body.items()
    }


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
