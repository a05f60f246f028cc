"""`/admin/api/webhooks`: what the webhooks of all accounts told."""

from typing import Annotated

import msgspec
from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from gateway.admin.api.keys import OfAccount
from gateway.ledger.audit import Actor
from gateway.webhooks.deliveries import MOST_PAGE, Deliveries, Delivery, DeliveryQuery, State

EventId = Annotated[str, PathParameter(description="An event's id: `evt_...`")]


class DeliveryPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events, the latest first; `next_after` is the `after` of the next page, null on the last."""

    deliveries: list[Delivery]
    next_after: str | None


class AdminWebhooksController(Controller):
    """Webhooks of every account; never the secrets that sign them."""

    path = "/webhooks"
    tags = ("Admin",)

    @get("/deliveries", summary="What was told, with every try, the latest first")
    async def list_deliveries(
        self,
        deliveries: NamedDependency[Deliveries],
        account_id: OfAccount = None,
        of_request: Annotated[str, QueryParameter(name="request", description="Only of this request.")] = "",
        state_is: Annotated[State | None, QueryParameter(name="state", description="Only in this state.")] = None,
        after: Annotated[str, QueryParameter(description="The last id of the page before.")] = "",
        limit: Annotated[int, QueryParameter(ge=1, le=MOST_PAGE)] = 100,
    ) -> DeliveryPage:
        """List events, of one account or of all."""
        query = DeliveryQuery(account_id=account_id, request_id=of_request, state=state_is, after=after, limit=limit)
        found = list(await deliveries.list(query))
        return DeliveryPage(deliveries=found, next_after=found[-1].id if len(found) == limit else None)

    @post("/deliveries/{event_id:str}/redeliver", status_code=202, summary="Tell an event again, now")
    async def redeliver(
        self, event_id: EventId, deliveries: NamedDependency[Deliveries], by: NamedDependency[Actor]
    ) -> Delivery:
        """Tell an event again, by a whole new schedule and under the same id."""
        return await deliveries.redeliver(None, event_id, by=by)
