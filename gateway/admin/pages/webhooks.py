"""Webhooks: whether receivers got what they were to be told."""

import asyncio
from collections.abc import Sequence
from typing import Any, get_args

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.webhook_actions import WEBHOOK_ACTIONS
from gateway.admin.pages.webhook_query import asked, chips_of
from gateway.admin.site.cards import card
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.webhooks.deliveries import MOST_PAGE, Deliveries, Delivery, DeliveryQuery, State
from gateway.webhooks.endpoints import read_endpoints

COLUMNS = ("id", "type", "request_id", "account_id", "url", "state", "created_at", "delivered_at", "next_at", "tries")
TONES = {"pending": "info", "delivered": "good", "given_up": "bad"}


@page("/admin/webhooks")
async def list_webhooks(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], deliveries: NamedDependency[Deliveries]
) -> Response[Any]:
    """Show receivers, and what they were told, the latest first."""
    query = asked(view.query)
    if view.format != "html":
        return _export(view, await deliveries.list(_whole(query)))
    endpoints, found, counted = await asyncio.gather(
        card(read_endpoints(engine), "endpoints", view.page_id),
        card(deliveries.list(query), "deliveries", view.page_id),
        card(deliveries.count(query), "count", view.page_id),
    )
    rows = found.value or []
    return view.render(
        "webhooks.html",
        endpoints=endpoints,
        rows=found,
        counted=counted,
        next_after=rows[-1].id if len(rows) == query.limit else None,
        chips=chips_of(query),
        states=get_args(State),
        tones=TONES,
    )


@page("/admin/webhooks/deliveries/{event_id:str}", data=False)
async def show_delivery(
    view: NamedDependency[View], deliveries: NamedDependency[Deliveries], event_id: FromPath[str]
) -> Response[Any]:
    """Show one event with its tries."""
    delivery = await deliveries.show(None, event_id)
    if view.format == "json":
        return view.json(delivery)
    return view.render("webhook_delivery.html", delivery=delivery, tones=TONES)


def _whole(query: DeliveryQuery) -> DeliveryQuery:
    return DeliveryQuery(
        account_id=query.account_id,
        request_id=query.request_id,
        host=query.host,
        state=query.state,
        after=query.after,
        limit=MOST_PAGE,
    )


def _export(view: View, found: Sequence[Delivery]) -> Response[Any]:
    next_after = found[-1].id if len(found) == MOST_PAGE else None
    if view.format == "json":
        return view.json({"deliveries": found, "next_after": next_after})
    rows = [[_cell(getattr(delivery, name)) for name in COLUMNS] for delivery in found]
    return view.csv("webhooks", COLUMNS, rows)


def _cell(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


PAGES = (list_webhooks, show_delivery, *WEBHOOK_ACTIONS)
