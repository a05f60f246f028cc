"""The way of a caller's media into the store: spooled, looked at, and only then kept, under the id of its request.

An `Intake` belongs to one call. Where the call is refused after all, `discard` removes what it brought; what a killed
gateway leaves is found by the sweeper, for no request of that id was ever admitted.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import BinaryIO

from gateway.blobs.names import input_name
from gateway.blobs.store import BlobsAway, BlobStore
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import Media
from gateway.errors import Unavailable
from gateway.media.limits import KINDS, Kind, MediaLimits
from gateway.media.probe.pool import Facts, Probes
from gateway.media.spool import spooled


class Inlet:
    """Takes media in. One a gateway process."""

    def __init__(self, store: BlobStore, probes: Probes, limits: MediaLimits, most_upload_bytes: int) -> None:
        self.store = store
        self.limits = limits
        self.most_upload_bytes = most_upload_bytes
        self._probes = probes

    def open(self) -> "Intake":
        """Begin the intake of one call."""
        return Intake(self)

    async def look(self, file: BinaryIO, kind: Kind | None, param: str | None) -> Facts:
        """Find out what a file is. Raises FaregateError where it is nothing of this kind, or over a limit."""
        return await self._probes.look(file, kind, self.limits, param)


class Intake:
    """The media of one call, under the id that its request will have."""

    def __init__(self, inlet: Inlet) -> None:
        self.request_id = new_request_id()
        self.taken: list[Media] = []
        """What lies in the store on behalf of this call."""
        self.most_bytes = inlet.most_upload_bytes
        """The largest form that may bring them."""
        self._inlet = inlet
        self._count = 0

    async def take(self, pieces: AsyncIterator[bytes], field: str, param: str | None = None) -> Media:
        """Take the media file of an input field in; `param` is how the caller calls the field.

        Raises MediaTooLarge (413), InvalidRequest (400) or Unprocessable (422) with the field's name, Unavailable.
        """
        kind, told = KINDS[field], param or field
        async with spooled(pieces, self._inlet.limits.most_bytes(kind), told) as file:
            facts = await self._inlet.look(file, kind, told)
            return await self._keep(file, facts)

    async def _keep(self, file: BinaryIO, facts: Facts) -> Media:
        name = input_name(self.request_id, self._count, facts.media_type)
        self._count += 1
        size = os.fstat(file.fileno()).st_size
        media = facts.media(name, size)
        self.taken.append(media)
        try:
            await self._inlet.store.put(name, file)
        except BlobsAway:
            raise Unavailable("The store for media is away for the moment; try again.", retry_after_s=1.0) from None
        return media

    async def discard(self) -> None:
        """Remove what was taken: the call was refused, or repeats an earlier one."""
        names = [media.blob for media in self.taken]
        self.taken = []
        if names:
            try:
                await asyncio.shield(self._inlet.store.delete(names))
            except BlobsAway:
                return  # the sweeper finds them
