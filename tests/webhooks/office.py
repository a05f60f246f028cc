"""What tests of webhooks need: requests with webhooks that are really settled, and senders over the same outbox."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx

from gateway.catalog.model import Snapshot
from gateway.commands.webhook_sender import Shown
from gateway.contract.ids import uuid_of
from gateway.db.session import slow_engine
from gateway.db.webhooks import WebhookKind
from gateway.flow.view import Viewer
from gateway.ledger.open_requests import OpenRequests
from gateway.media.addresses import Addresses
from gateway.net.addresses import Allowed
from gateway.net.client import guarded_client
from gateway.queues.memory import MemoryQueues
from gateway.routing.estimate import Estimates
from gateway.routing.outlook import Outlook
from gateway.webhooks.deliveries import Deliveries, Delivery
from gateway.webhooks.outbox import Outbox
from gateway.webhooks.sender import Sender
from gateway.webhooks.signing import Signing
from tests.ledger.till import HOLD, Till, ended

QUICK = (0.05, 0.1, 0.1)
"""A schedule for tests: four tries in a quarter of a second."""
PATIENT_S = 60.0
"""How long a try may take, and with some seconds more its lease: a machine that stalls makes no try of its own."""
ALLOWED = Allowed.parse("127.0.0.1")


class Office:
    """One database, its till, and senders."""

    def __init__(self, database_url: str) -> None:
        self.till = Till(database_url, empty=True)
        self.engine = slow_engine(database_url, pool_size=8)
        self.outbox = Outbox(self.engine)
        self.signing = Signing(self.engine)
        self.secrets = self.signing.secrets
        self.deliveries = Deliveries(self.engine)
        now_us = time.time_ns() // 1000
        self.queues = MemoryQueues(lambda: now_us)  # it stands: no lease ends while a test runs slowly
        self.payer = (0, 0)
        self._clients: list[httpx.AsyncClient] = []
        self._senders: list[Sender] = []

    async def __aenter__(self) -> "Office":
        await self.till.__aenter__()
        await self.till.db.execute("truncate webhook_event, webhook_delivery, webhook_secret")
        self.payer = await self.till.payer(1_000_000 * HOLD)
        return self

    async def __aexit__(self, *exc: object) -> None:
        for client in self._clients:
            await client.aclose()
        await self.till.__aexit__(*exc)
        await self.engine.dispose()
        assert [sender.faults for sender in self._senders if sender.faults] == []

    async def admit(self, url: str, events: Sequence[WebhookKind] = ("completed",), **fields: Any) -> str:
        """Open a request whose caller wants to be told."""
        told = {"keep": True, "payload": b"{}", "webhook": url, "webhook_events": tuple(events)}
        return str(await self.till.admit(self.payer, **(told | fields)))

    async def settle(self, *request_ids: str, **fields: Any) -> None:
        """End requests, all in one batch."""
        await self.till.settlement.settle([ended(request_id, **fields) for request_id in request_ids])

    async def ended(self, url: str, **fields: Any) -> str:
        """Open and end a request."""
        request_id = await self.admit(url, **fields)
        await self.settle(request_id)
        return request_id

    def sender(
        self, *, allowed: Allowed = ALLOWED, timeout_s: float = PATIENT_S, schedule: Sequence[float] = QUICK
    ) -> Sender:
        """Make a sender with a client of its own."""
        client = guarded_client(allowed, timeout_s=timeout_s, most_connections=64)
        self._clients.append(client)
        snapshot = Snapshot(revision=0, models={}, pools={}, prices={}, model_names={1: "painter"})
        viewer = Viewer(queue=self.queues.pool, snapshot=lambda: snapshot, estimates=Estimates(Outlook()))
        shown = Shown(OpenRequests(self.engine), viewer, Addresses("k" * 20, "http://localhost", 3600))
        sender = Sender(self.outbox, self.signing, client, shown.show, timeout_s=timeout_s, schedule=schedule)
        self._senders.append(sender)
        return sender

    async def of(self, request_id: str, kind: str = "completed") -> Delivery:
        """Show what became of an event."""
        return await self.deliveries.show(None, f"evt_{uuid_of(request_id).hex}-{kind}")

    async def until(self, request_id: str, state: str, kind: str = "completed", within_s: float = 90.0) -> Delivery:
        """Wait until an event is in a state."""
        async with asyncio.timeout(within_s):
            while (found := await self.of(request_id, kind)).state != state:
                await asyncio.sleep(0.02)
        return found


class running:
    """Runs senders for the length of a block."""

    def __init__(self, *senders: Sender) -> None:
        self._senders = senders
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> None:
        self._tasks = [asyncio.create_task(sender.run(self._stopping)) for sender in self._senders]

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        await asyncio.gather(*self._tasks)
