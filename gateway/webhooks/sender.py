"""Sends what is due: signed, to addresses that may be reached, for a day, each receiver apart from the others.

An event is told at least once, always under the same id, and those of one request in their order. Several senders
share one outbox: each takes events on lease, and what a killed one had taken is due again when its lease runs out.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

import httpx
import msgspec
import structlog

from gateway.errors import FaregateError, Unavailable
from gateway.net.addresses import UrlNotAllowed
from gateway.webhooks.events import Due
from gateway.webhooks.hosts import MOST_AT_ONCE, Hosts
from gateway.webhooks.message import Render
from gateway.webhooks.outbox import Outbox
from gateway.webhooks.schedule import RETRY_S, next_s
from gateway.webhooks.signing import Signing

log = structlog.get_logger()

LOOK_S = 0.5
"""Between two looks for what is due, while nothing ends."""
PAUSE_S = 1.0
MOST_UNDER_WAY = 256
LEASE_MARGIN_S = 5.0
"""How much longer than a try may take its lease lasts."""
MOST_AT_DATABASE = 6
"""Tries that read or write Postgres at once; no more than the engine has connections, so that none waits in vain."""
GONE = 410
"""The receiver says that it never wants to hear of this again."""

Count = Callable[[str, float], None]
"""Told how a try ended (`delivered`, `failed` or `given_up`) and how many seconds it took."""

_encode = msgspec.json.encode


class Try(msgspec.Struct, frozen=True):
    """How one try ended: what the receiver answered, if it did, and what went wrong, if anything."""

    status: int | None
    error: str
    last: bool = False
    """Whether it makes no sense to try again."""


class Sender:
    """One process's sender. Give each its own client and database engine: nothing else waits for receivers then."""

    def __init__(
        self,
        outbox: Outbox,
        signing: Signing,
        client: httpx.AsyncClient,
        render: Render,
        *,
        timeout_s: float,
        schedule: Sequence[float] = RETRY_S,
        count: Count = lambda result, seconds: None,
    ) -> None:
        self._outbox = outbox
        self._signing = signing
        self._client = client
        self._render = render
        self._timeout_s = timeout_s
        self._schedule = schedule
        self._count = count
        self.faults = 0
        """Errors in this code: what was told then is told again after its lease."""
        self._hosts = Hosts(time.monotonic)
        self._database = asyncio.Semaphore(MOST_AT_DATABASE)
        self._telling: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    @property
    def under_way(self) -> int:
        """How many tries are under way."""
        return self._hosts.under_way

    async def run(self, stopping: asyncio.Event) -> None:
        """Send until told to stop; then what is under way is broken off, and due again after its lease."""
        while not stopping.is_set():
            try:
                taken = await self.round()
            except Unavailable as error:
                log.warning("webhooks.retry", error=error.message)
                await asyncio.sleep(PAUSE_S)
                continue
            if taken < MOST_AT_ONCE:
                await self._rest()
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def round(self) -> int:
        """Take what is due and begin to tell it. Answers how many were taken."""
        self._ended.clear()
        room = MOST_UNDER_WAY - self._hosts.under_way
        if room <= 0:
            return 0
        taken = await self._outbox.lease(
            most_of_one=MOST_AT_ONCE,
            most=room,
            busy=self._hosts.busy(),
            lease_s=self._timeout_s + LEASE_MARGIN_S,
        )
        for due in taken:
            self._hosts.began(due.host)
            task = asyncio.get_running_loop().create_task(self._tell(due))
            self._telling.add(task)
            task.add_done_callback(self._over)
        return len(taken)

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._telling:
            await asyncio.wait(self._telling)

    async def _rest(self) -> None:
        try:
            await asyncio.wait_for(self._ended.wait(), LOOK_S)
        except TimeoutError:
            return

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._telling.discard(task)
        self._ended.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.faults += 1
            log.error("webhooks.fault", faults=self.faults, exc_info=error)

    async def _tell(self, due: Due) -> None:
        """Make one try, and write it down. Where Postgres is away it counts as not made."""
        began, done = time.monotonic(), Try(None, "broken off")
        try:
            async with asyncio.timeout(self._timeout_s):
                done = await self._send(due)
        except TimeoutError:
            done = Try(None, "no answer in time")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            done = Try(None, type(error).__name__)  # its words may hold an address that was resolved
        except UrlNotAllowed as error:
            done = Try(None, error.code)
        finally:
            self._hosts.ended(due.host, well=not done.error)
        took_s = time.monotonic() - began
        again_s = None if done.last else next_s(due.round, self._schedule)
        try:
            async with self._database:
                await self._outbox.record(
                    due, status=done.status, took_ms=round(took_s * 1000), error=done.error, next_s=again_s
                )
        except Unavailable as error:
            log.warning("webhooks.not_recorded", webhook=due.key.id, error=error.message)
        self._count("delivered" if not done.error else "failed" if again_s else "given_up", took_s)
        log.info("webhook.tried", webhook=due.key.id, status=done.status, error=done.error, tries=due.tries)

    async def _send(self, due: Due) -> Try:
        try:
            async with self._database:
                message = await self._render(due)
                if message is None:
                    return Try(None, "the request is gone", last=True)
                body = _encode(message.content)
                headers = await self._signing.headers(message.signed, due, int(time.time()), body)
        except FaregateError as error:
            return Try(None, f"not made ready: {error.code}")
        headers |= {"content-type": "application/json", "user-agent": "faregate-webhooks"}
        async with self._client.stream("POST", due.url, content=body, headers=headers) as answer:
            status = answer.status_code  # nothing of the body is read, however long it is
        if 200 <= status < 300:
            return Try(status, "")
        return Try(status, "redirects are not followed" if answer.has_redirect_location else f"answered {status}",
                   last=status == GONE)  # fmt: skip
