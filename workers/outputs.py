"""Where an output goes: back through Redis, or as media into the blob folder under the name of its attempt."""

import asyncio
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gateway.contract.events import MediaOutput, Output
from gateway.contract.ids import admitted_ms
from gateway.contract.request import Request
from workers.engine import Run

EXTENSIONS = {
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mpeg": "mp3",
    "audio/ogg": "opus",
    "audio/pcm": "pcm",
    "audio/wav": "wav",
}
"""How a file of each media type ends."""


class OutputNotStored(Exception):
    """The blob folder did not take the file."""


class Outputs:
    """Decides where outputs go, and writes those that become files."""

    def __init__(self, blob_dir: Path, inline_bytes: int) -> None:
        self._blob_dir = blob_dir
        self._inline_bytes = inline_bytes

    def to_store(self, request: Request, output: Output) -> bool:
        """Say whether this output becomes a file: media of a kept request, and those too large for Redis."""
        if type(output) is not MediaOutput or (request.stream and not request.keep):
            return False
        return request.keep or output.size_bytes > self._inline_bytes

    async def store(self, run: Run, output: MediaOutput) -> MediaOutput:
        """Write the file, count it as the store phase, and answer the output that names it. Raises OutputNotStored."""
        name = blob_name(run.request.id, run.attempt, output.media_type)
        began = time.perf_counter_ns()
        try:
            await asyncio.to_thread(_write, self._blob_dir / name, output.data)
        except OSError as error:
            raise OutputNotStored(error.strerror or "the blob folder does not take it") from error
        finally:
            run.phases.store_us += (time.perf_counter_ns() - began) // 1000
        return MediaOutput(output.media_type, output.size_bytes, blob=name)

    def discard(self, output: Output | None) -> None:
        """Remove the file of an attempt that lost, if it wrote one."""
        if type(output) is MediaOutput and output.blob:
            (self._blob_dir / output.blob).unlink(missing_ok=True)


def inline(request: Request, output: Output) -> Output | None:
    """Give what the terminal event carries: no content where the caller has had it in deltas and none is kept."""
    if not request.stream or request.keep:
        return output
    return msgspec.structs.replace(output, data=b"") if type(output) is MediaOutput else None


def blob_name(request_id: str, attempt: int, media_type: str) -> str:
    """Name the file of one attempt: by day of admission, so that folders stay small and can be dropped by age."""
    day = datetime.fromtimestamp(admitted_ms(request_id) / 1000, UTC)
    return f"{day:%Y/%m/%d}/{request_id}-{attempt}.{EXTENSIONS.get(media_type, 'bin')}"


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: temporary name, fsync, rename, fsync of the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
