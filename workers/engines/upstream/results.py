"""The results of a call, as an upstream names them, made into its output: each copied, and of the right kind."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.contract.events import GalleryOutput, MediaOutput, Output
from gateway.contract.tasks import Task
from gateway.media.limits import Kind
from workers.engine import EngineError
from workers.engines.upstream.failures import UpstreamFailed, unreadable
from workers.engines.upstream.protocol import Call

MOST_RESULTS = 16
"""Files of one call; one that names more is not believed."""

IMAGES: tuple[Task, ...] = (
    "text-to-image",
    "image-edit",
    "image-blend",
    "image-relight",
    "image-restyle",
    "image-upscale",
)
VIDEOS: tuple[Task, ...] = ("text-to-video", "image-to-video", "video-upscale", "talking-head")
SOUNDS: tuple[Task, ...] = ("text-to-speech", "voice-clone", "music")

KINDS: dict[Task, Kind] = {
    **dict.fromkeys(IMAGES, "image"),
    **dict.fromkeys(VIDEOS, "video"),
    **dict.fromkeys(SOUNDS, "audio"),
}
"""What a task's results are."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A result as an upstream gives it: an address or data URI, Base64, or the bytes themselves."""

    url: str = ""
    base64: str = ""
    data: bytes = b""
    declared: str = ""
    """The media type that was asked for; believed of raw sound only."""
    role: str = ""
    """As in MediaOutput; what has one may be missing."""
    seed: int | None = None


def kind_of(call: Call) -> Kind:
    """Say of which kind the results of a call must be. Raises EngineError for a task that has no files."""
    task = call.run.request.task
    if task not in KINDS:
        raise EngineError(f"The upstream {call.upstream.name} does not do {task}.")
    return KINDS[task]


async def copied(call: Call, found: Sequence[Found]) -> Output:
    """Copy the results, one after the other, and make the output of them.

    Raises UpstreamFailed where there is none, too many, or one cannot be had. Small pictures that stand for a video
    are taken where they can be had.
    """
    kind = kind_of(call)
    wanted = [each for each in found if not each.role]
    if not wanted:
        raise unreadable("the answer names no result")
    if len(wanted) > MOST_RESULTS:
        raise unreadable(f"the answer names {len(wanted)} results")
    if kind != "image":
        wanted = wanted[:1]
    items = [await _take(call, each, kind) for each in wanted]
    if kind != "image" and not items[0].duration_ms:
        _take_at_word(call, kind)
    if kind == "audio":
        return items[0]
    if kind == "video":
        items += await _thumbnail(call, found)
    return GalleryOutput(items)


def _take_at_word(call: Call, kind: Kind) -> None:
    """Count the seconds that were asked for, where those that came cannot be measured, and say so."""
    given = call.run.input
    asked = getattr(given, "seconds", None) or (given.extra or {}).get("duration")
    try:
        asked_ms = round(float(asked or 0) * 1000)
    except (TypeError, ValueError):
        asked_ms = 0
    call.estimated = True
    setattr(call.run.units, f"{kind}_ms", asked_ms)


async def _thumbnail(call: Call, found: Sequence[Found]) -> list[MediaOutput]:
    for each in found:
        if each.role:
            try:
                return [msgspec.structs.replace(await _take(call, each, "image"), role=each.role)]
            except UpstreamFailed:
                return []
    return []


async def _take(call: Call, found: Found, kind: Kind) -> MediaOutput:
    if found.url:
        item = await call.parcels.fetch(found.url, kind=kind)
    elif found.base64:
        item = await call.parcels.decoded(found.base64, kind=kind)
    else:
        item = await call.parcels.take(found.data, kind=kind, declared=found.declared)
    return item if found.seed is None else msgspec.structs.replace(item, seed=found.seed)


def place(value: Any, *names: str) -> Any:
    """Follow names into objects of an answer; None where one is missing, or is no object."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *names: str) -> str:
    """Give the text at a place of an answer; empty where there is none."""
    found = place(value, *names)
    return found if isinstance(found, str) else ""


def address(value: Any) -> str:
    """Give the address that an answer holds as a text, or as an object with a `url`; empty where it is none."""
    text = value if isinstance(value, str) else text_at(value, "url")
    return text if text.startswith(("http://", "https://", "data:")) else ""


def seed_of(value: Any) -> int | None:
    """Give a seed that an answer names; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None
