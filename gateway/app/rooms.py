"""The rooms of the gateway and what they are given: the admin API, the dashboard, the dialects of other clouds."""

from typing import Any

from litestar import Router

from gateway.admin.api.router import admin_router
from gateway.admin.live.orders import Orders
from gateway.admin.pages import PAGES
from gateway.admin.pages.requests.detail import Looks
from gateway.admin.playground.desk import PlayDesk
from gateway.admin.site.oidc.members import config_of
from gateway.admin.site.site import SiteParts, site_router
from gateway.admin.site.throttle import PACE
from gateway.app.parts import Parts
from gateway.flow.shelf import Shelf
from gateway.http.gmi.queue import MEDIA_TASKS, GmiQueue
from gateway.http.gmi.sign_in import SignIn
from gateway.http.replicate.predictions import Replicate
from gateway.ledger.accounts import Accounts
from gateway.ledger.kept_requests import KeptRequests
from gateway.ledger.keys import Keys
from gateway.net.addresses import Allowed
from gateway.queues.tries import RedisTries
from gateway.reports.exports.exports import Exports
from gateway.reports.figures import Figures
from gateway.reports.statements.read import Statements
from gateway.webhooks.secrets import Secrets
from gateway.webhooks.trial import Trials


def admin_room(parts: Parts) -> Router:
    """Make the routes of the admin API."""
    return admin_router(
        parts.settings.operator_keys,
        accounts=Accounts(parts.engine),
        keys=Keys(parts.engine),
        usage_report=parts.usage_report,
        engine=parts.engine,
        deliveries=parts.deliveries,
        revisions=parts.revisions,
    )


def site_room(parts: Parts) -> Router:
    """Make the routes of the dashboard and of the owners' pages."""
    site = SiteParts(
        engine=parts.engine,
        keyring=parts.keyring,
        operator_keys=parts.settings.operator_keys,
        secret=parts.settings.admin_key,
        base_url=parts.settings.base_url,
        oidc=config_of(parts.settings),
        tries=RedisTries(parts.queues.wire, PACE),
    )
    given = {
        "sampler": parts.sampler,
        "play": PlayDesk(parts.engine, parts.way, parts.settings.base_url),
        "figures": Figures(parts.engine),
        "exports": Exports(parts.settings.database_url),
        "statements": Statements(parts.engine),
        "catalog": parts.catalog,
        "base_url": parts.settings.base_url,
        "looks": Looks(queue=parts.queues.pool, addresses=parts.addresses),
        "orders": Orders(parts.engine, parts.queues.operator, parts.queues.pool),
        "deliveries": parts.deliveries,
        "revisions": parts.revisions,
        "signing": Secrets(parts.engine),
        "trials": Trials(parts.engine, Allowed.parse(parts.settings.fetch_allow), parts.settings.webhook_timeout_s),
    }
    return site_router(site, PAGES, given)


def dialects(parts: Parts) -> dict[str, Any]:
    """Make what the dialects of other clouds work with."""
    shelf = Shelf(parts.way, parts.watch, KeptRequests(parts.engine), parts.blobs, MEDIA_TASKS)
    return {
        "gmi": GmiQueue(parts.desk, parts.floor, shelf),
        "sign_in": SignIn(parts.keyring, parts.sessions),
        "replicate": Replicate(parts.desk, parts.floor, shelf),
    }
