"""What a gateway does for callers that wait longer than usual.

The payload of a synchronous request lives in the gateway that accepted it. When Redis has lost the
request, this gateway puts it back; when only the word of its settlement was lost, it looks the charge up;
when the queue stays away or the deadline has passed, it ends the waiting.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable

import msgspec

from gateway.contract.events import Frame
from gateway.errors import DeadlineExceeded, EngineFailed, Unavailable
from gateway.flow.follow import Mailbox
from gateway.flow.way import Way
from gateway.ledger.open_requests import OpenRequests
from gateway.queues.port import QueueUnavailable, SettlerSide

LOOK_S = 1.0
"""Between two looks."""
PATIENCE_S = 3.0
"""How long a caller has waited before its request is looked for."""
OUTPUT_LATE_S = 3.0
"""How long the output may come after the charge, before it counts as lost."""
DEADLINE_GRACE_S = 5.0
"""How long after the deadline the worker's own word for it is waited for."""


class Resend:
    """Looks after the open mailboxes of one gateway."""

    def __init__(
        self, way: Way, side: SettlerSide, open_requests: OpenRequests, is_away: Callable[[BaseException], bool]
    ) -> None:
        self._way = way
        self._side = side
        self._open_requests = open_requests
        self._is_away = is_away
        self._settled_s: dict[str, float] = {}

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except QueueUnavailable:
                continue
            except Exception as error:
                if not self._is_away(error):
                    raise

    async def look(self) -> None:
        """Look once at every caller that has waited for longer than usual."""
        now_s = time.monotonic()
        late: dict[str, list[Mailbox]] = defaultdict(list)
        boxes = list(self._way.mailboxes)
        self._settled_s = {box.id: self._settled_s[box.id] for box in boxes if box.id in self._settled_s}
        for box in boxes:
            age_s = now_s - box.began_s
            if age_s < PATIENCE_S or box.done:
                continue
            admitted = box.enqueued.admitted
            if age_s > admitted.deadline_s + DEADLINE_GRACE_S:
                box.fail(
                    DeadlineExceeded("The deadline passed before there was an answer.", request_id=box.id), "deadline"
                )
            elif box.settled is not None:
                self._await_output(box, now_s)
            else:
                late[admitted.routed.pool.name].append(box)
        for pool, boxes in late.items():
            await self._find(pool, boxes)

    def _await_output(self, box: Mailbox, now_s: float) -> None:
        since_s = self._settled_s.setdefault(box.id, now_s)
        if now_s - since_s > OUTPUT_LATE_S:
            box.fail(
                EngineFailed("The answer was lost on its way to you.", code="answer_incomplete", request_id=box.id)
            )

    async def _find(self, pool: str, boxes: list[Mailbox]) -> None:
        """Put back what is open in Postgres and nowhere in Redis; fetch the charge of what is settled already.

        The order of looks matters: queue and leases first, then the settlements (both in `missing`), then
        Postgres. A request that ends meanwhile is seen in one of the later looks.
        """
        missing = await self._side.missing(pool, [box.id for box in boxes])
        if not missing:
            return
        still_open = set(await self._open_requests.still_open(list(missing)))
        by_id = {box.id: box for box in boxes}
        await self._way.queue(pool).enqueue(
            [
                msgspec.structs.replace(by_id[request_id].enqueued.waiting, attempt=attempt)
                for request_id, attempt in missing.items()
                if request_id in still_open
            ]
        )
        for request_id in missing:
            if request_id not in still_open:
                await self._learn_settled(by_id[request_id])

    async def _learn_settled(self, box: Mailbox) -> None:
        settled = await self._open_requests.settled(box.id)
        if settled is None:
            box.fail(Unavailable("The request was not admitted.", request_id=box.id))
        else:
            box.deliver(Frame(box.id, settled.attempt, -1, settled))
