"""The sender of webhooks, wired: it runs inside the settler, with connections of its own."""

import asyncio
from collections.abc import Callable

from gateway.catalog.model import Snapshot
from gateway.db.session import slow_engine
from gateway.flow.view import Viewer
from gateway.http.webhook_shapes import message_of
from gateway.ledger.open_requests import OpenRequests
from gateway.media.addresses import Addresses
from gateway.net.addresses import Allowed
from gateway.net.client import guarded_client
from gateway.queues.port import GatewaySide
from gateway.routing.estimate import Estimates
from gateway.routing.outlook import Outlook
from gateway.settings import Settings
from gateway.settler_metrics import SettlerMetrics
from gateway.webhooks.budgets import BudgetAlerts
from gateway.webhooks.events import Due
from gateway.webhooks.forget import forget
from gateway.webhooks.message import Message
from gateway.webhooks.outbox import Outbox
from gateway.webhooks.running import Running
from gateway.webhooks.sender import MOST_UNDER_WAY, Sender
from gateway.webhooks.signing import Signing


class Shown:
    """Shows requests in webhooks as the family that they came through shows them to their owners."""

    def __init__(self, open_requests: OpenRequests, viewer: Viewer, addresses: Addresses) -> None:
        self._open_requests = open_requests
        self._addresses = addresses
        self._viewer = viewer

    async def show(self, due: Due) -> Message | None:
        """Make the message of an event; None where its request is no more."""
        record = await self._open_requests.record(due.account_id, due.key.request_id)
        return None if record is None else message_of(due, await self._viewer.view_of(record), self._addresses)


async def run_webhooks(
    settings: Settings,
    queue: Callable[[str], GatewaySide],
    snapshot: Callable[[], Snapshot],
    metrics: SettlerMetrics,
    stopping: asyncio.Event,
) -> None:
    """Send webhooks until told to stop."""
    engine = slow_engine(settings.database_url)
    outbox, signing = Outbox(engine), Signing(engine)
    viewer = Viewer(queue=queue, snapshot=snapshot, estimates=Estimates(Outlook()))
    addresses = Addresses(settings.admin_key, settings.base_url, settings.media_url_s)
    shown = Shown(OpenRequests(engine), viewer, addresses)
    allowed = Allowed.parse(settings.fetch_allow)
    try:
        async with guarded_client(
            allowed, timeout_s=settings.webhook_timeout_s, most_connections=MOST_UNDER_WAY
        ) as client:
            sender = Sender(
                outbox, signing, client, shown.show, timeout_s=settings.webhook_timeout_s, count=metrics.webhook
            )
            alerts = BudgetAlerts(engine, client, signing.secrets, timeout_s=settings.webhook_timeout_s)
            metrics.webhooks_under_way(lambda: sender.under_way)
            async with asyncio.TaskGroup() as group:
                group.create_task(sender.run(stopping))
                group.create_task(alerts.run(stopping))
                group.create_task(Running(outbox, queue).run(stopping))
                group.create_task(forget(outbox, signing.secrets, stopping))
    finally:
        await engine.dispose()
