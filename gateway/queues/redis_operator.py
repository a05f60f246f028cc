"""The operators' side of a queue in Redis."""

import msgspec
import structlog

from gateway.contract.pools import decode_status
from gateway.queues.keys import keys_of
from gateway.queues.operators import Look, Seen
from gateway.queues.scripts import script
from gateway.queues.wire import Wire

log = structlog.get_logger()


class RedisOperator:
    """The queue of one pool, as operators use it (operators.OperatorSide). Raises QueueUnavailable."""

    def __init__(self, wire: Wire, pool: str) -> None:
        self._wire = wire
        self._keys = keys = keys_of(pool)
        self._look_keys = (keys.queue, keys.leases, keys.settlements, keys.tally, keys.orders, keys.workers)

    async def look(self, most: int) -> Look:
        """Show the pool, with up to `most` of the head of its queue."""
        waiting, leased, settling, entered, head, orders, workers = await self._wire.run(
            script("look"), self._look_keys, most
        )
        names = {name.decode() for name in orders}
        return Look(
            waiting=waiting,
            leased=leased,
            settling=settling,
            entered=entered,
            head=[request_id.decode() for request_id in head],
            paused="" in names,
            drained=frozenset(names - {""}),
            workers=_seen(workers),
        )

    async def pause(self, *, on: bool) -> bool:
        """Let nobody take from the pool, or everybody again. Answers whether that is new."""
        return await self._order("", on) == 1

    async def drain(self, worker: str, *, on: bool) -> bool | None:
        """Tell a worker to take no more, or to go on. Answers whether that is new; None where there is no such one."""
        done = await self._order(worker, on) if worker else -1
        return None if done < 0 else done == 1

    async def _order(self, whom: str, on: bool) -> int:
        keys = self._keys
        touched = (keys.orders, keys.workers, keys.queue, keys.wake)
        return int(await self._wire.run(script("order"), touched, whom, "stop" if on else "go"))


def _seen(workers: list[int | bytes]) -> list[Seen]:
    """Read the words of workers; one of another release that cannot be read is left out."""
    seen = []
    for at in range(0, len(workers), 2):
        try:
            seen.append(Seen(decode_status(bytes(workers[at + 1])), int(workers[at])))
        except msgspec.MsgspecError as error:
            log.warning("look.unreadable", error=str(error))
    return seen
