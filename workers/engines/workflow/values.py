"""What the references of a template give: fields of the workflow's input, and what steps have made."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from gateway.contract.events import MediaOutput, Output, TextOutput, TranscriptOutput, media_of
from gateway.contract.inputs import Media
from gateway.contract.workflow import Lookup, Reference, TextOf

Find = Callable[[Reference], Awaitable[Any]]
"""Gives what a reference leads to; None where that is not there."""


async def fill(template: Any, find: Find) -> Any:
    """Fill a template in, as plain values: what is not there is left out."""
    if isinstance(template, Lookup):
        return await _first(template, find)
    if isinstance(template, TextOf):
        parts = [part if isinstance(part, str) else await _first(part, find) for part in template.parts]
        return "".join(str(part) for part in parts if part is not None)
    if isinstance(template, dict):
        filled = {key: await fill(item, find) for key, item in template.items()}
        return {key: item for key, item in filled.items() if item is not None}
    if isinstance(template, list):
        items = [await fill(item, find) for item in template]
        return [item for item in items if item is not None]
    return template


async def _first(lookup: Lookup, find: Find) -> Any:
    for reference in lookup.among:
        value = await find(reference)
        if value is not None:
            return msgspec.to_builtins(value)
    return None


def of_input(given: msgspec.Struct, path: tuple[str, ...]) -> Any:
    """Give a field of the workflow's input, or a property of a media file in it; None where it is not there."""
    head, *rest = path
    value = getattr(given, head, None)
    if not rest:
        return value
    return _property(value, rest[0]) if isinstance(value, Media) else None


def of_output(output: Output, head: str) -> Any:
    """Give what a step made, or a property of it; None where it is not there."""
    if head == "text":
        return _text(output)
    files = wanted(output)
    if head == "items":
        return [as_media(item) for item in files] or None
    if not files:
        return None
    return as_media(files[0]) if head == "media" else _property(as_media(files[0]), head)


def wanted(output: Output | None) -> list[MediaOutput]:
    """Give the files of an output that were asked for, without thumbnails and the like."""
    return [item for item in media_of(output) if not item.role]


def as_media(item: MediaOutput) -> Media:
    """Make a step's input of another's output."""
    return Media(
        blob=item.blob,
        media_type=item.media_type,
        size_bytes=item.size_bytes,
        width=item.width,
        height=item.height,
        duration_ms=item.duration_ms,
        frames=item.frames,
    )


def _text(output: Output) -> str | None:
    if isinstance(output, TextOutput):
        return output.choices[0].text if output.choices else None
    return output.text if isinstance(output, TranscriptOutput) else None


def _property(media: Media, name: str) -> Any:
    """Give a property of a media file; what is not known of it counts as absent."""
    if name == "duration_s":
        return media.duration_ms / 1000 or None
    if name == "size":
        return f"{media.width}x{media.height}" if media.width and media.height else None
    return getattr(media, name) or None
