"""The event log of a request in Redis: a stream of one pool, whose key is also the channel that tells of it."""

from collections.abc import Sequence

from gateway.queues.event_log import PAGE, Entry
from gateway.queues.keys import keys_of
from gateway.queues.moves import Moved, read_moved
from gateway.queues.wire import Wire


class RedisLog:
    """The log of one request in one pool (event_log.Log)."""

    def __init__(self, wire: Wire, pool: str, request_id: str) -> None:
        self._wire = wire
        self._keys = keys_of(pool)
        self._request_id = request_id
        self.channel = self._keys.events(request_id)

    async def page(self, start: str) -> Sequence[Entry]:
        """Read up to PAGE entries from the id `start` on, from the first where that is empty."""
        rows = await self._wire.call("XRANGE", self.channel, start or "-", "+", "COUNT", PAGE)
        return [(entry.decode(), int(fields[1]), fields[3]) for entry, fields in rows]

    async def moved(self) -> Moved | None:
        """Say where the request went on; None where it is in this pool, or in none."""
        return read_moved(await self._wire.call("HGET", self._keys.jobs, self._request_id))

    async def last(self) -> Entry | None:
        """Read the last entry; None where nothing is kept."""
        rows = await self._wire.call("XREVRANGE", self.channel, "+", "-", "COUNT", 1)
        return (rows[0][0].decode(), int(rows[0][1][1]), rows[0][1][3]) if rows else None
