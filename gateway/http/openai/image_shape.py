"""How image calls are answered: files as base64 or addresses, whole or as events with previews before them."""

from base64 import b64encode
from typing import Any

import msgspec

from gateway.contract.events import ImageDelta, MediaOutput, asked_for
from gateway.contract.ids import admitted_ms
from gateway.contract.inputs.image import Imaging
from gateway.errors import FaregateError
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers, money_fields
from gateway.http.endpoint import Deltas
from gateway.http.errors import Headers, openai_body
from gateway.http.openai.media_bodies import ImageAnswer
from gateway.http.parts import Part, base64_part
from gateway.media.addresses import Addresses

_encode = msgspec.json.encode
QUALITIES = frozenset({"low", "medium", "high", "xhigh", "max"})


def image_usage(answer: Answer) -> dict[str, Any]:
    """Tell what was measured and charged, in the form of image answers."""
    units = answer.units
    return {
        "input_tokens": units.input_tokens,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": units.input_tokens},
        "output_tokens": units.output_tokens,
        "total_tokens": units.input_tokens + units.output_tokens,
        "images": units.images,
        "pixels": units.pixels,
        "steps": units.steps,
        **money_fields(answer),
    }


def format_of(media_type: str) -> str:
    """Give the name of a format: `png` of `image/png`."""
    return media_type.partition("/")[2]


class ImageShape:
    """Whether images go as base64 or as addresses, and whether they are streamed; `event` begins the events' names."""

    def __init__(self, asked: ImageAnswer, event: str, addresses: Addresses) -> None:
        self.stream = bool(asked.stream)
        self._asked = asked
        self._event = event
        self._addresses = addresses

    def whole(self, answer: Answer) -> tuple[Headers, list[Part]]:
        """Write a whole answer."""
        items = asked_for(answer.output)
        head: dict[str, Any] = {
            "id": answer.id,
            "created": answer.created_s,
            "model": answer.model,
            "background": "transparent" if self._asked.background == "transparent" else "opaque",
        }
        if self._asked.quality in QUALITIES:
            head["quality"] = self._asked.quality
        if items:
            head |= {"output_format": format_of(items[0].media_type), "size": f"{items[0].width}x{items[0].height}"}
        parts: list[Part] = [_encode(head)[:-1] + b',"data":[']
        for item in items:
            parts += self._image(item)
            parts.append(b",")
        if items:
            parts.pop()
        parts.append(b'],"usage":' + _encode(image_usage(answer)) + b"}")
        return [*answer_headers(answer), (b"content-type", b"application/json")], parts

    def _image(self, item: MediaOutput) -> list[Part]:
        seed = b"" if item.seed is None else b',"seed":%d' % item.seed
        url = self._addresses.of_output(item) if self._asked.response_format == "url" else None
        if url is not None:
            return [b'{"url":' + _encode(url) + seed + b"}"]
        return [b'{"b64_json":"', base64_part(item), b'"' + seed + b"}"]

    def writer(self, placed: Placed) -> "ImageWriter":
        """Begin a stream."""
        return ImageWriter(placed, self._asked, self._event)


class ImageWriter:
    """Writes `partial_image` events, and a `completed` one for each image, the last with usage and charge."""

    content_type = b"text/event-stream; charset=utf-8"

    def __init__(self, placed: Placed, asked: Imaging, event: str) -> None:
        self._event = event.encode()
        self._said = {
            "created_at": admitted_ms(placed.id) // 1000,
            "background": asked.background or "auto",
            "quality": asked.quality or "auto",
            "size": asked.size or "auto",
        }

    def deltas(self, deltas: Deltas) -> bytes:
        """Write previews."""
        return b"".join([
            b"".join(self._written(
                b"partial_image",
                b64encode(delta.data),
                {
                    "output_format": format_of(delta.media_type),
                    "partial_image_index": delta.preview,
                    "index": delta.index,
                },
            ))  # type: ignore[arg-type]
            for delta in deltas
            if isinstance(delta, ImageDelta)
        ])  # fmt: skip

    def end(self, answer: Answer) -> list[Part]:
        """Write the images."""
        parts: list[Part] = []
        items = asked_for(answer.output)
        for index, item in enumerate(items):
            more: dict[str, Any] = {
                "output_format": format_of(item.media_type),
                "size": f"{item.width}x{item.height}",
                "index": index,
                "request_id": answer.id,
            }
            if index == len(items) - 1:
                more["usage"] = image_usage(answer)
            parts += self._written(b"completed", base64_part(item), more)
        return parts

    def broken(self, error: FaregateError) -> bytes:
        """Write an error event."""
        return b"event: error\ndata: " + _encode(openai_body(error)) + b"\n\n"

    def _written(self, kind: bytes, image: Part, more: dict[str, Any]) -> list[Part]:
        name = self._event + b"." + kind
        head = b"event: " + name + b'\ndata: {"type":"' + name + b'","b64_json":"'
        return [head, image, b'",' + _encode(self._said | more)[1:] + b"\n\n"]
