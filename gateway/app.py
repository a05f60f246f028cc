"""The gateway process, wired: the only place where its parts meet."""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import structlog
from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.handlers import asgi
from litestar.openapi import OpenAPIConfig

from gateway.admin.api import admin_router
from gateway.blobs.local import LocalBlobs
from gateway.catalog.snapshot import SnapshotSource
from gateway.db.session import HotSession, slow_engine
from gateway.errors import FaregateError, Unavailable
from gateway.flow.floor import Floor
from gateway.flow.resend import Resend
from gateway.flow.watch import Watch
from gateway.flow.way import Way
from gateway.heap import freeze_heap
from gateway.http.departures import Departures
from gateway.http.endpoint import AsgiHandler, Desk, Endpoint
from gateway.http.errors import handle_faregate, handle_http, handle_unexpected
from gateway.http.front import Front
from gateway.http.health import live, metrics, ready
from gateway.http.models import ModelsController
from gateway.http.native.requests import RequestsController
from gateway.http.native.submit import SubmitEndpoint
from gateway.http.openai.chat import ChatFamily
from gateway.http.openai.completions import CompletionFamily
from gateway.http.openai.embeddings import EmbeddingFamily
from gateway.http.openai.speech import SpeechFamily
from gateway.http.openapi import openapi_json, openapi_page
from gateway.http.usage import UsageController
from gateway.ledger.accounts import Accounts
from gateway.ledger.admission import Admission
from gateway.ledger.books.verify import Books
from gateway.ledger.keyring import Keyring
from gateway.ledger.keys import Keys
from gateway.ledger.open_requests import OpenRequests
from gateway.metrics import Metrics
from gateway.process import is_away, process_name
from gateway.queues.port import QueueUnavailable
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_settler import RedisSettler
from gateway.queues.replies import Replies
from gateway.readiness import Readiness
from gateway.reports.usage import UsageReport
from gateway.routing.backlog import Backlog
from gateway.routing.choice import Routes
from gateway.settings import Settings
from gateway.version import VERSION

log = structlog.get_logger()

FIRST_LOOK_S = 5.0


class Parts:
    """Everything a gateway process is made of."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name = process_name()
        self.engine = slow_engine(settings.database_url)
        self.key_session = HotSession(settings.database_url, name="faregate keyring")
        self.keyring = Keyring(self.key_session, every_s=settings.snapshot_s)
        self.catalog = SnapshotSource(self.engine, engines=settings.engines, every_s=settings.snapshot_s)
        self.admission = Admission(settings.database_url, most=settings.admit_batch)
        self.queues = RedisQueues(settings.redis_url)
        self.settler_side = RedisSettler(settings.redis_url, self.name)
        self.open_requests = OpenRequests(self.engine)
        self.usage_report = UsageReport(self.engine)
        self.backlog = Backlog()
        self.way = Way(
            name=self.name,
            snapshot=self.catalog.snapshot,
            keyring=self.keyring,
            routes=Routes(self.catalog.snapshot, random.Random()),
            backlog=self.backlog,
            admission=self.admission,
            queue=self.queues.pool,
        )
        self.replies = Replies(self.queues.channels, self.name, self.way.mailboxes.deliver, self.way.mailboxes.gap)
        self.watch = Watch(self.way, self.open_requests, self.catalog.snapshot)
        self.resend = Resend(self.way, self.settler_side, self.open_requests, is_away)
        self.departures = Departures()
        self.floor = Floor(self.name, self.catalog.snapshot, self.queues.pool, self.backlog)
        self.metrics = Metrics()
        self.metrics.waiting.set_function(lambda: len(self.way.mailboxes))
        self.readiness = Readiness(
            refreshed_at=lambda: min(self.keyring.refreshed_at, self.catalog.refreshed_at),
            queue_away=lambda: self.floor.queue_away,
        )
        self.blobs = LocalBlobs(settings.blob_dir)
        self.desk = Desk(self.way, self.watch, self.departures, self.metrics, self.blobs, settings.max_body_bytes)

    def admin(self) -> Router:
        """Make the routes of the admin API."""
        return admin_router(
            self.settings.admin_key,
            accounts=Accounts(self.engine),
            keys=Keys(self.engine),
            usage_report=self.usage_report,
            books=Books(self.engine, blob_dir=self.settings.blob_dir, missing=self.settler_side.missing),
        )

    @contextlib.asynccontextmanager
    async def running(self, _: Litestar) -> AsyncIterator[None]:
        """Run what goes on beside the calls, from the first call to the last."""
        await self._first_look()
        stopping = asyncio.Event()
        tasks = [
            _guarded(name, work)
            for name, work in (
                ("keyring", self.keyring.run(stopping)),
                ("catalog", self.catalog.run(stopping)),
                ("replies", self._listen()),
                ("floor", self.floor.run()),
                ("resend", self.resend.run()),
                ("departures", self.departures.run()),
            )
        ]
        freeze_heap()
        try:
            yield
        finally:
            stopping.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.close()

    async def _first_look(self) -> None:
        """Wait for keys and catalog, so that the first calls meet them; not for ever, since Postgres may be away."""
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_S):
                await self.keyring.refresh()
                await self.catalog.refresh()

    async def _listen(self) -> None:
        """Open the reply channel as soon as Redis is there."""
        while True:
            try:
                await self.replies.open()
            except QueueUnavailable:
                await asyncio.sleep(0.2)
            else:
                return

    async def close(self) -> None:
        """Close all connections."""
        await self.admission.close()
        await self.key_session.close()
        await self.queues.close()
        await self.settler_side.close()
        await self.engine.dispose()


def _guarded(name: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Start work that is never to end; when it does by a fault, the process ends with it and is started afresh."""
    task = asyncio.create_task(work, name=name)

    def ended(done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            log.critical("gateway.fault", task=name, exc_info=error)
            os._exit(70)

    task.add_done_callback(ended)
    return task


def create_app(settings: Settings) -> Front:
    """Make the gateway's ASGI application."""
    parts = Parts(settings)
    families = (ChatFamily(), CompletionFamily(), EmbeddingFamily(), SpeechFamily())
    hot: dict[str, AsgiHandler] = {family.path: Endpoint(family, parts.desk).serve for family in families}
    hot[SubmitEndpoint.path] = SubmitEndpoint(parts.desk).serve
    given = {
        "way": parts.way,
        "watch": parts.watch,
        "floor": parts.floor,
        "blobs": parts.blobs,
        "readiness": parts.readiness,
        "metrics": parts.metrics,
        "usage_report": parts.usage_report,
    }
    litestar = Litestar(
        route_handlers=[
            *(asgi(path, copy_scope=False)(serve) for path, serve in hot.items()),
            RequestsController,
            ModelsController,
            UsageController,
            parts.admin(),
            live,
            ready,
            metrics,
            openapi_json,
            openapi_page,
        ],
        dependencies={name: Provide(_giving(part), sync_to_thread=False) for name, part in given.items()},
        exception_handlers={
            FaregateError: handle_faregate,
            HTTPException: handle_http,
            Exception: handle_unexpected,
        },
        lifespan=[parts.running],
        state=State({"readiness": parts.readiness}),
        openapi_config=OpenAPIConfig(title="Faregate", version=VERSION, path="/openapi/litestar"),
        request_max_body_size=settings.max_body_bytes,
        logging_config=None,
        debug=False,
    )
    return Front(hot, litestar)


def _giving(part: Any) -> Any:
    def give() -> Any:
        return part

    return give
