"""The gateway's ASGI application: its routes, and what their handlers are given by name."""

from functools import partial
from typing import Any

from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide
from litestar.handlers import asgi
from litestar.openapi import OpenAPIConfig

from gateway.admin.site.assets import check_assets
from gateway.admin.site.oidc.members import config_of
from gateway.app.parts import Parts
from gateway.app.rooms import admin_room, dialects
from gateway.app.running import running
from gateway.flow.shelf import Shelf
from gateway.http.blobs import BlobsController
from gateway.http.endpoint import AsgiHandler
from gateway.http.errors import native_body
from gateway.http.fal.door import PREFIX as FAL_PREFIX
from gateway.http.fal.door import FalDoor
from gateway.http.families import endpoints
from gateway.http.files import FilesController
from gateway.http.front import Front
from gateway.http.gmi.routes import GMI_ROUTES
from gateway.http.handlers import handlers_of
from gateway.http.health import live, metrics, ready
from gateway.http.late import Late
from gateway.http.models import ModelsController
from gateway.http.native.requests import RequestsController
from gateway.http.openai.video_calls import VIDEO_TASKS
from gateway.http.openai.videos import Videos, VideosController
from gateway.http.openapi import openapi_json, openapi_page
from gateway.http.own_key import OwnKeyController
from gateway.http.payments.routes import Cashier, take_payment
from gateway.http.replicate.routes import REPLICATE_ROUTES
from gateway.http.usage import UsageController
from gateway.http.webhooks import WebhooksController
from gateway.ledger.kept_requests import KeptRequests
from gateway.ledger.keys import Keys
from gateway.ledger.limits import LimitStore
from gateway.ledger.payments import Payments
from gateway.net.addresses import networks_of
from gateway.settings import Settings
from gateway.version import VERSION
from gateway.webhooks.public_keys import PublicKeys
from gateway.webhooks.secrets import Secrets


def create_app(settings: Settings) -> Front:
    """Make the gateway's ASGI application."""
    parts = Parts(settings)
    hot = endpoints(parts.desk)
    given = {
        "way": parts.way,
        "watch": parts.watch,
        "floor": parts.floor,
        "blobs": parts.blobs,
        "addresses": parts.addresses,
        "files": parts.files,
        "inlet": parts.inlet,
        "readiness": parts.readiness,
        "metrics": parts.metrics,
        "videos": Videos(
            parts.desk, Shelf(parts.way, parts.watch, KeptRequests(parts.engine), parts.blobs, VIDEO_TASKS)
        ),
        "usage_report": parts.usage_report,
        "deliveries": parts.deliveries,
        "cashier": Cashier(settings, Payments(parts.engine)),
        "signing": Secrets(parts.engine),
        "keys": Keys(parts.engine),
        "limits": LimitStore(parts.engine),
    }
    given |= dialects(parts)
    litestar = Litestar(
        route_handlers=[
            *(asgi(path, copy_scope=False)(serve) for path, serve in hot.items()),
            RequestsController,
            ModelsController,
            UsageController,
            OwnKeyController,
            WebhooksController,
            VideosController,
            BlobsController,
            FilesController,
            *GMI_ROUTES,
            *REPLICATE_ROUTES,
            admin_room(parts),
            take_payment,
            live,
            ready,
            metrics,
            openapi_json,
            openapi_page,
        ],
        dependencies={name: Provide(_giving(part), sync_to_thread=False) for name, part in given.items()},
        exception_handlers=handlers_of(native_body),
        lifespan=[partial(running, parts)],
        state=State({"readiness": parts.readiness}),
        openapi_config=OpenAPIConfig(title="Faregate", version=VERSION, path="/openapi/litestar"),
        request_max_body_size=settings.max_body_bytes,
        logging_config=None,
        debug=False,
    )
    fal = FalDoor(parts.desk, parts.files, PublicKeys(parts.engine))
    proxies = networks_of(settings.trusted_proxies, "trusted_proxies")
    return Front(hot, {FAL_PREFIX: fal.serve}, _site(parts), litestar, proxies)


def _site(parts: Parts) -> AsgiHandler:
    """Give what serves the pages; what they lack is told now, and not at the first page."""
    check_assets()
    oidc = config_of(parts.settings)

    def make() -> Litestar:
        from gateway.app.site import create_site

        return create_site(parts, oidc)

    return Late(make).serve


def _giving(part: Any) -> Any:
    def give() -> Any:
        return part

    return give
