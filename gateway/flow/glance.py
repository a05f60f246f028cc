"""Looking at a request that is asked for again and again: Postgres is only read when its queue no longer knows it.

A client that polls ten times a second would otherwise cost a statement each time. What an open request's row holds
never changes, so it is kept here for those that were looked at, and the queue alone says how they stand.
"""

from collections import OrderedDict

from gateway.errors import NotFound
from gateway.flow.authenticate import identify
from gateway.flow.view import View
from gateway.flow.watch import Watch
from gateway.flow.way import Way
from gateway.ledger.open_requests import Record

MOST_KEPT = 10_000
"""Open requests remembered by one gateway; the one that was looked at longest ago goes first."""


class Glances:
    """Shows requests to those who poll. One a gateway process."""

    def __init__(self, way: Way, watch: Watch) -> None:
        self._way = way
        self._watch = watch
        self._open: OrderedDict[str, Record] = OrderedDict()

    async def view_for(self, secret: str, request_id: str) -> View:
        """Show a request to the holder of a key. Raises Unauthorized, or NotFound also for another account's."""
        known = self._open.get(request_id)
        if known is not None:
            caller = await identify(self._way.keyring, secret)
            if caller.account_id != known.account_id:
                raise NotFound("There is no such request.")
            view = await self._watch.view_of(known)
            if view.status == "running" or view.position is not None:
                self._open.move_to_end(request_id)
                return view
            del self._open[request_id]
        record = await self._watch.record_for(secret, request_id)
        if record.finished_us is None:
            self._open[request_id] = record
            if len(self._open) > MOST_KEPT:
                self._open.popitem(last=False)
        view = await self._watch.view_of(record)
        if view.status == "queued" and view.position is None:
            self._open.pop(request_id, None)
            return await self._watch.view_for(secret, request_id)
        return view
