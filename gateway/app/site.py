"""The dashboard and the owners' pages: an application of their own, made when the first page is asked for."""

from litestar import Litestar

from gateway.admin.live.orders import Orders
from gateway.admin.pages import PAGES
from gateway.admin.pages.requests.detail import Looks
from gateway.admin.playground.desk import PlayDesk
from gateway.admin.site.headers import guard_refusals
from gateway.admin.site.oidc.members import OidcConfig
from gateway.admin.site.site import SiteParts, site_router
from gateway.admin.site.throttle import PACE
from gateway.app.parts import Parts
from gateway.http.errors import native_body
from gateway.http.handlers import handlers_of
from gateway.net.addresses import Allowed
from gateway.queues.tries import RedisTries
from gateway.reports.exports.exports import Exports
from gateway.reports.figures import Figures
from gateway.reports.statements.read import Statements
from gateway.webhooks.secrets import Secrets
from gateway.webhooks.trial import Trials


def create_site(parts: Parts, oidc: OidcConfig | None) -> Litestar:
    """Make the application of the pages. Takes 0.5 s of a processor and 10 MB, spared where none is shown."""
    settings = parts.settings
    site = SiteParts(
        engine=parts.engine,
        keyring=parts.keyring,
        operator_keys=settings.operator_keys,
        secret=settings.admin_key,
        base_url=settings.base_url,
        oidc=oidc,
        tries=RedisTries(parts.queues.wire, PACE),
    )
    given = {
        "sampler": parts.sampler,
        "play": PlayDesk(parts.engine, parts.way, settings.base_url),
        "figures": Figures(parts.engine),
        "exports": Exports(settings.database_url),
        "statements": Statements(parts.engine),
        "catalog": parts.catalog,
        "base_url": settings.base_url,
        "looks": Looks(queue=parts.queues.pool, addresses=parts.addresses),
        "orders": Orders(parts.engine, parts.queues.operator, parts.queues.pool),
        "deliveries": parts.deliveries,
        "revisions": parts.revisions,
        "signing": Secrets(parts.engine),
        "trials": Trials(parts.engine, Allowed.parse(settings.fetch_allow), settings.webhook_timeout_s),
    }
    return Litestar(
        route_handlers=[site_router(site, PAGES, given)],
        exception_handlers=handlers_of(native_body),
        before_send=[guard_refusals],
        openapi_config=None,
        request_max_body_size=settings.max_body_bytes,
        logging_config=None,
        debug=False,
    )
