"""The verification of the books, wired: it runs inside the settler, with connections of its own."""

import asyncio

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.blobs.choice import open_blobs
from gateway.db.session import slow_engine
from gateway.ledger.books.keeper import BooksKeeper
from gateway.ledger.books.queue import Missing
from gateway.ledger.books.verify import Books
from gateway.net.addresses import Allowed
from gateway.net.client import guarded_client
from gateway.settings import Settings
from gateway.settler_metrics import SettlerMetrics
from gateway.webhooks.alerts import BooksAlerts


async def run_books(settings: Settings, missing: Missing, metrics: SettlerMetrics, stopping: asyncio.Event) -> None:
    """Verify the books by the clock and when asked, and tell when they turn, until told to stop."""
    engine = slow_engine(settings.database_url, pool_size=2)
    keeper = BooksKeeper(
        engine,
        quick=Books(engine, missing=missing),
        complete=Books(engine, blobs=open_blobs(settings.blobs), missing=missing),
        every_s=settings.books_every_s,
        told=metrics,
    )
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(keeper.run(stopping))
            if settings.alert_url:
                group.create_task(_alert(engine, settings, stopping))
    finally:
        await engine.dispose()


async def _alert(engine: AsyncEngine, settings: Settings, stopping: asyncio.Event) -> None:
    allowed, timeout_s = Allowed.parse(settings.fetch_allow), settings.webhook_timeout_s
    async with guarded_client(allowed, timeout_s=timeout_s, most_connections=1) as client:
        alerts = BooksAlerts(
            engine,
            client,
            url=settings.alert_url,
            key=settings.alert_key,
            base_url=settings.base_url,
            timeout_s=timeout_s,
        )
        await alerts.run(stopping)
