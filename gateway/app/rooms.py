"""The rooms of the gateway and what they are given: the admin API, the dialects of other clouds."""

from typing import Any

from litestar import Router

from gateway.admin.api.router import admin_router
from gateway.app.parts import Parts
from gateway.flow.shelf import Shelf
from gateway.http.gmi.queue import MEDIA_TASKS, GmiQueue
from gateway.http.gmi.sign_in import SignIn
from gateway.http.replicate.predictions import Replicate
from gateway.ledger.accounts import Accounts
from gateway.ledger.kept_requests import KeptRequests
from gateway.ledger.keys import Keys


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


def dialects(parts: Parts) -> dict[str, Any]:
    """Make what the dialects of other clouds work with."""
    shelf = Shelf(parts.way, parts.watch, KeptRequests(parts.engine), parts.blobs, MEDIA_TASKS)
    return {
        "gmi": GmiQueue(parts.desk, parts.floor, shelf),
        "sign_in": SignIn(parts.keyring, parts.sessions),
        "replicate": Replicate(parts.desk, parts.floor, shelf),
    }
