"""Everything a gateway process is made of, put together once."""

import random
from functools import partial

from gateway.admin.live.sampler import Sampler, Sampling
from gateway.blobs.choice import open_blobs
from gateway.catalog.snapshot import SnapshotSource
from gateway.db.session import HotSession, slow_engine
from gateway.flow.floor import Floor
from gateway.flow.offers import Offers
from gateway.flow.resend import Resend
from gateway.flow.watch import Watch
from gateway.flow.way import Means, Way
from gateway.http.departures import Departures
from gateway.http.endpoint import Desk
from gateway.ledger.admission import Admission
from gateway.ledger.keyring import Keyring
from gateway.ledger.open_requests import OpenRequests
from gateway.ledger.sessions import Sessions
from gateway.media.addresses import Addresses
from gateway.media.fetch import Fetcher
from gateway.media.files import Files
from gateway.media.inlet import Inlet
from gateway.media.limits import MediaLimits
from gateway.media.probe.pool import Probes
from gateway.media.sources import Sources
from gateway.metrics import Metrics
from gateway.net.addresses import Allowed
from gateway.process import is_away, process_name
from gateway.queues.histories import RedisHistories
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_settler import RedisSettler
from gateway.queues.replies import Replies
from gateway.queues.revisions import RedisRevisions
from gateway.readiness import Readiness
from gateway.reports.usage import UsageReport
from gateway.routing.backlog import Backlog
from gateway.routing.choice import Routes
from gateway.settings import Settings
from gateway.webhooks.deliveries import Deliveries


class Parts:
    """Everything a gateway process is made of."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name = process_name()
        self.engine = slow_engine(settings.database_url)
        self.key_session = HotSession(settings.database_url, name="faregate keyring")
        self.sessions = Sessions(settings.admin_key)
        self.keyring = Keyring(self.key_session, every_s=settings.snapshot_s, sessions=self.sessions)
        self.catalog = SnapshotSource(self.engine, engines=settings.engines, every_s=settings.snapshot_s)
        self.admission = Admission(
            settings.database_url,
            most=settings.admit_batch,
            abandoned=lambda opening: self.way.abandon(opening),  # it is made before the way that it is part of
        )
        self.queues = RedisQueues(settings.redis_url)
        self.settler_side = RedisSettler(settings.redis_url, self.name)
        self.open_requests = OpenRequests(self.engine)
        self.usage_report = UsageReport(self.engine)
        self.deliveries = Deliveries(self.engine)
        self.backlog = Backlog()
        self._open_media()
        routes = Routes(self.catalog.snapshot, random.Random())
        self.way = Way(
            Means(
                name=self.name,
                snapshot=self.catalog.snapshot,
                keyring=self.keyring,
                routes=routes,
                backlog=self.backlog,
                offers=Offers(settings.admin_key),
                admission=self.admission,
                queue=self.queues.pool,
                inlet=self.inlet,
                sources=Sources(self.fetcher, self.files, self.addresses, self.blobs),
            )
        )
        self.replies = Replies(self.queues.channels, self.name, self.way.mailboxes.deliver, self.way.mailboxes.gap)
        self.watch = Watch(self.way, self.open_requests, self.catalog.snapshot)
        self.resend = Resend(self.way, self.settler_side, self.open_requests, is_away)
        self.departures = Departures()
        histories = RedisHistories(self.queues.wire)
        self.revisions = RedisRevisions(self.queues.wire)
        self.catalog.heard = partial(self.revisions.report, self.name)
        self.floor = Floor(
            self.name, self.catalog.snapshot, self.queues.pool, self.backlog, routes.estimates, histories
        )
        self.sampler = self._sampler(routes)
        self.metrics = Metrics()
        self.metrics.waiting.set_function(lambda: len(self.way.mailboxes))
        self.readiness = Readiness(
            refreshed_at=lambda: min(self.keyring.refreshed_at, self.catalog.refreshed_at),
            queue_away=lambda: self.floor.queue_away,
        )
        self.desk = Desk(
            way=self.way,
            watch=self.watch,
            departures=self.departures,
            metrics=self.metrics,
            blobs=self.blobs,
            inlet=self.inlet,
            addresses=self.addresses,
            most_bytes=settings.max_body_bytes,
            media_wait_s=settings.media_wait_s,
        )

    def _sampler(self, routes: Routes) -> Sampler:
        """Make what looks at queues and workers while somebody watches."""
        return Sampler(
            Sampling(
                catalog=self.catalog.snapshot,
                operator=self.queues.operator,
                floor=self.floor,
                estimates=routes.estimates,
                engine=self.engine,
            )
        )

    def _open_media(self) -> None:
        """Make what takes media in, keeps them, and gives them out."""
        settings = self.settings
        self.blobs = open_blobs(settings.blobs)
        self.probes = Probes()
        limits = MediaLimits(**{name: getattr(settings, f"max_{name}") for name in MediaLimits.__struct_fields__})
        self.inlet = Inlet(self.blobs, self.probes, limits, settings.max_upload_bytes)
        self.files = Files(self.engine, self.inlet, keep_s=settings.keep_output_s, most_bytes=settings.max_file_bytes)
        self.fetcher = Fetcher(Allowed.parse(settings.fetch_allow), settings.fetch_s)
        self.addresses = Addresses(settings.admin_key, settings.base_url, settings.media_url_s)

    async def close(self) -> None:
        """Close all connections, and end the probes."""
        await self.probes.close()
        await self.fetcher.close()
        await self.admission.close()
        await self.way.close_down()
        await self.key_session.close()
        await self.queues.close()
        await self.settler_side.close()
        await self.engine.dispose()
