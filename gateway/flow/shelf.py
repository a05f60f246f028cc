"""What an account keeps of some tasks, such as its videos: one, a page of them, and throwing one away."""

import asyncio
from collections.abc import Sequence

from gateway.blobs.store import BlobsAway, BlobStore
from gateway.contract.events import media_of
from gateway.contract.ids import uuid_of
from gateway.contract.tasks import Task
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.flow.authenticate import identify
from gateway.flow.view import View
from gateway.flow.watch import Watch
from gateway.flow.way import Way
from gateway.ledger.kept_requests import KeptRequests, Page


class Shelf:
    """Looks after the kept requests of some tasks. Whose they are stands in every question to Postgres."""

    def __init__(self, way: Way, watch: Watch, kept: KeptRequests, blobs: BlobStore, tasks: Sequence[Task]) -> None:
        self._way = way
        self._watch = watch
        self._kept = kept
        self._blobs = blobs
        self.tasks = tasks

    async def page(
        self, secret: str, after: str, limit: int, newest_first: bool, model_id: int | None = None
    ) -> tuple[list[View], bool]:
        """Show a page, and say whether more follow. Raises Unauthorized, or InvalidRequest for an `after` of no id."""
        caller = await identify(self._way.keyring, secret)
        try:
            after and uuid_of(after)
        except ValueError:
            raise InvalidRequest("after must be the id of one that was listed.", param="after") from None
        page = Page(tasks=self.tasks, after=after, limit=limit, newest_first=newest_first, model_id=model_id)
        records, more = await self._kept.page(caller.account_id, page)
        return await asyncio.gather(*(self._watch.view_of(record) for record in records)), more

    async def count(self, secret: str, model_id: int | None = None) -> int:
        """Count what the pages have in all, up to a limit that nobody reads to."""
        caller = await identify(self._way.keyring, secret)
        return await self._kept.count(caller.account_id, Page(tasks=self.tasks, model_id=model_id))

    async def view_for(self, secret: str, request_id: str) -> View:
        """Show one. Raises NotFound also for another account's, for another task's, and once it was thrown away."""
        view = await self._watch.view_for(secret, request_id)
        if view.task not in self.tasks or (view.finished_us is not None and view.expires_us is None):
            raise NotFound("There is no such thing, or it is no longer kept.")
        return view

    async def throw_away(self, secret: str, request_id: str) -> None:
        """Forget one and remove its media; one that still runs is stopped first, and paid as its model declares.

        Raises NotFound, or Conflict where it could not be stopped in time.
        """
        view = await self.view_for(secret, request_id)
        if view.finished_us is None:
            await self._watch.cancel(secret, request_id)
            view = await self._watch.settled_view(secret, request_id)
            if view.finished_us is None:
                raise Conflict("It still runs, and is being stopped; try again.", code="still_running")
        caller = await identify(self._way.keyring, secret)
        output = await self._kept.forget(caller.account_id, request_id)
        names = [item.blob for item in media_of(output) if item.blob]
        try:
            await self._blobs.delete(names)
        except BlobsAway:
            return  # nothing names them any more: the sweeper removes them when their time has passed
