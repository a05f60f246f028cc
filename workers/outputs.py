"""Where an output goes: back through Redis, or as media into the blob store under the name of its attempt."""

import asyncio
import time
from collections.abc import Sequence

import msgspec
import structlog

from gateway.blobs.names import output_name, owner_of
from gateway.blobs.store import BlobMissing, BlobsAway, BlobStore
from gateway.contract.events import GalleryOutput, MediaOutput, Output, media_of
from gateway.contract.inputs import Media
from gateway.contract.request import Request
from workers.engine import EngineError, Run

log = structlog.get_logger()


class OutputNotStored(Exception):
    """The blob store did not take a file."""


class Outputs:
    """Decides where outputs go, writes those that become files, and reads the media of callers."""

    def __init__(self, store: BlobStore, inline_bytes: int) -> None:
        self._store = store
        self._inline_bytes = inline_bytes
        self._discarding: set[asyncio.Task[None]] = set()

    def to_store(self, request: Request, output: Output) -> bool:
        """Say whether this output becomes files: media of a kept request, and those too large for Redis."""
        unstored = [item for item in media_of(output) if not item.blob]
        if not unstored or (request.stream and not request.keep):
            return False
        return request.keep or sum(len(item.data) for item in unstored) > self._inline_bytes

    async def read(self, media: Media) -> bytes:
        """Read a caller's media file. Raises EngineError where it is gone."""
        try:
            return await self._store.get(media.blob)
        except BlobMissing:
            raise EngineError("A media input is no longer kept.") from None
        except BlobsAway:
            raise EngineError("A media input could not be read.") from None

    async def store(self, run: Run, output: Output) -> Output:
        """Write the files, count that as the store phase, and answer the output that names them.

        Raises OutputNotStored; then none of them is left.
        """
        single = isinstance(output, MediaOutput)
        stored: list[MediaOutput] = []
        began = time.perf_counter_ns()
        try:
            for index, item in enumerate(media_of(output)):
                name = output_name(run.request.id, run.attempt, item.media_type, None if single else index)
                stored.append(item if item.blob else msgspec.structs.replace(item, data=b"", blob=name))
                if not item.blob:
                    await self._store.put(name, item.data)
        except BlobsAway as error:
            self.discard(run.request.id, run.attempt, GalleryOutput(stored))
            raise OutputNotStored(str(error)) from error
        finally:
            run.phases.store_us += (time.perf_counter_ns() - began) // 1000
        return stored[0] if single else GalleryOutput(stored)

    def discard(self, request_id: str, attempt: int, output: Output | None) -> None:
        """Remove the files of an attempt that lost, and of no other; what cannot be removed now, the sweeper finds."""
        names = [item.blob for item in media_of(output) if item.blob]
        mine = [name for name in names if _is_of(name, request_id, attempt)]
        if mine:
            task = asyncio.get_running_loop().create_task(self._remove(mine))
            self._discarding.add(task)
            task.add_done_callback(self._discarding.discard)

    async def _remove(self, names: Sequence[str]) -> None:
        try:
            await self._store.delete(names)
        except BlobsAway as error:
            log.warning("outputs.not_discarded", files=len(names), error=str(error))

    async def close(self) -> None:
        """Wait until what is to be discarded is gone."""
        if self._discarding:
            await asyncio.wait(self._discarding)


def inline(request: Request, output: Output) -> Output | None:
    """Give what the terminal event carries: no content where the caller has had it in deltas and none is kept."""
    if not request.stream or request.keep:
        return output
    if isinstance(output, GalleryOutput):
        return GalleryOutput([msgspec.structs.replace(item, data=b"") for item in output.items])
    return msgspec.structs.replace(output, data=b"") if isinstance(output, MediaOutput) else None


def _is_of(name: str, request_id: str, attempt: int) -> bool:
    owner = owner_of(name)
    return owner is not None and (owner.request, owner.attempt) == (request_id, attempt)
