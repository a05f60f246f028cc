"""What is remembered of a job elsewhere: a small file in the blob store, named after the request that bought it.

It is written before the job is bought and again with the job's id, so that whoever takes the request after a crash, or
after Redis was emptied, goes on waiting and buys nothing.
"""

import asyncio

import msgspec
import structlog

from gateway.blobs.names import job_name
from gateway.blobs.store import BlobMissing, BlobsAway, BlobStore
from workers.engine import EngineError
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.protocol import Job

log = structlog.get_logger()

WRITE_TRIES = 5
PAUSE_S = 0.2


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request's job was bought; without a job nobody can tell yet whether it was."""

    upstream: str
    model: str
    reference: str
    """Our own name for it there."""
    job: Job | None = None


_DECODER = msgspec.json.Decoder(Note)


class Notes:
    """The notes of all requests."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store

    async def find(self, request_id: str) -> Note | None:
        """Read the note of a request; None where it has none. Raises EngineError while the store is away."""
        try:
            data = await self._store.get(job_name(request_id))
        except BlobMissing:
            return None
        except BlobsAway:
            raise EngineError("It could not be seen whether this was bought before; try again later.") from None
        try:
            return _DECODER.decode(data)
        except msgspec.DecodeError:
            raise unreadable("the note of a job is damaged") from None

    async def intend(self, request_id: str, note: Note) -> None:
        """Note that a job is about to be bought. Raises EngineError where that cannot be noted."""
        try:
            await self._store.put(job_name(request_id), msgspec.json.encode(note))
        except BlobsAway:
            raise EngineError("A job could not be noted before it was bought; try again later.") from None

    async def keep(self, request_id: str, note: Note) -> None:
        """Note what was bought. Where that cannot be, the job goes on: it is only lost with this worker."""
        for number in range(WRITE_TRIES):
            try:
                await self._store.put(job_name(request_id), msgspec.json.encode(note))
            except BlobsAway as error:
                log.warning("upstream.job_not_noted", request_id=request_id, error=str(error))
                await asyncio.sleep(PAUSE_S * 2**number)
            else:
                return

    async def forget(self, request_id: str) -> None:
        """Remove the note of a request, so that it may be bought anew; the sweeper finds what is left."""
        try:
            await self._store.delete([job_name(request_id)])
        except BlobsAway as error:
            log.warning("upstream.note_not_removed", request_id=request_id, error=str(error))
