"""What the worker does itself: a registry of functions that make one file of others, by FFmpeg's libraries."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Media
from gateway.contract.workflow import FramesInput, JoinInput, TrimInput
from workers.engine import EngineError, RefusedInput

Files = Mapping[str, bytes]
"""The bytes of media files by the name of their blob."""
Doing = Callable[[Any, Files, threading.Event], MediaOutput]


def need_media() -> dict[type[msgspec.Struct], Doing]:
    """Import what works on media, and give what does each input. Raises ImportError where PyAV is not installed."""
    from workers.engines.workflow.frames import frames_to_video
    from workers.engines.workflow.join import join
    from workers.engines.workflow.trim import trim

    return {JoinInput: join, TrimInput: trim, FramesInput: frames_to_video}


def media_in(given: msgspec.Struct) -> Iterator[Media]:
    """Yield the media files of an input."""
    for name in given.__struct_fields__:
        value = getattr(given, name)
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Media))


async def do_locally(given: msgspec.Struct, files: Files) -> MediaOutput:
    """Do a local step in a thread, which stops within a frame when this is cancelled.

    Raises RefusedInput where a file cannot be read.
    """
    from av.error import FFmpegError

    doing, stopping = need_media()[type(given)], threading.Event()
    try:
        return await asyncio.to_thread(doing, given, files, stopping)
    except FFmpegError as error:
        raise RefusedInput(f"A media file could not be worked on: {error.strerror}.") from None
    finally:
        stopping.set()


def source(value: Any, files: Files) -> bytes:
    """Give the bytes of a media field. Raises EngineError for one that is no file of the blob store."""
    if not isinstance(value, Media):
        raise EngineError("A media input was not staged.")
    return files[value.blob]
