"""`/v1/webhooks`: what an account's webhooks told, telling it again, and what they are signed with."""

from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from gateway.flow.authenticate import identify
from gateway.flow.way import Way
from gateway.http.native.requests import secret_of
from gateway.webhooks.deliveries import MOST_PAGE, Deliveries, Delivery, DeliveryQuery
from gateway.webhooks.deliveries import State as DeliveryState
from gateway.webhooks.secrets import Secrets, SigningSecret

EventId = Annotated[str, PathParameter(description="An event's id: `evt_...`")]
OfRequest = Annotated[str, QueryParameter(name="request", description="Only of this request")]
InState = Annotated[DeliveryState | None, QueryParameter(name="state", description="Only those in this state")]
After = Annotated[str, QueryParameter(description="The id of the last event of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=MOST_PAGE)]

_PRIVATE = {"cache-control": "no-store"}


class DeliveryList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events, the latest first; `next_after` is the `after` of the next page, null on the last."""

    data: list[Delivery]
    next_after: str | None


def page_of(found: "list[Delivery]", limit: int) -> DeliveryList:
    """Make a page of what was found."""
    return DeliveryList(data=found, next_after=found[-1].id if len(found) == limit else None)


class WebhooksController(Controller):
    """The webhooks of the calling key's account."""

    path = "/v1/webhooks"
    tags = ("Webhooks",)

    @get("/deliveries", summary="What was told, with every try")
    async def list_deliveries(
        self,
        request: Request[Any, Any, State],
        way: NamedDependency[Way],
        deliveries: NamedDependency[Deliveries],
        of_request: OfRequest = "",
        state_is: InState = None,
        after: After = "",
        limit: Limit = 100,
    ) -> Response[DeliveryList]:
        """List events of the account, the latest first."""
        caller = await identify(way.keyring, secret_of(request))
        query = DeliveryQuery(
            account_id=caller.account_id, request_id=of_request, state=state_is, after=after, limit=limit
        )
        return Response(page_of(list(await deliveries.list(query)), limit), headers=_PRIVATE)

    @post("/deliveries/{event_id:str}/redeliver", status_code=202, summary="Tell an event again, now")
    async def redeliver(
        self,
        request: Request[Any, Any, State],
        event_id: EventId,
        way: NamedDependency[Way],
        deliveries: NamedDependency[Deliveries],
    ) -> Response[Delivery]:
        """Tell an event of the account again, by a whole new schedule and under the same id."""
        caller = await identify(way.keyring, secret_of(request))
        return Response(await deliveries.redeliver(caller.account_id, event_id), status_code=202)

    @get("/secret", summary="What webhooks are signed with; the first look makes it")
    async def show_secret(
        self, request: Request[Any, Any, State], way: NamedDependency[Way], signing: NamedDependency[Secrets]
    ) -> Response[SigningSecret]:
        """Show the secret of the account."""
        caller = await identify(way.keyring, secret_of(request))
        return Response(await signing.show(caller.account_id), headers=_PRIVATE)

    @post("/secret/rotate", status_code=200, summary="Make a new secret; the one before signs for another 24 hours")
    async def rotate_secret(
        self, request: Request[Any, Any, State], way: NamedDependency[Way], signing: NamedDependency[Secrets]
    ) -> Response[SigningSecret]:
        """Replace the secret of the account."""
        caller = await identify(way.keyring, secret_of(request))
        return Response(await signing.rotate(caller.account_id), headers=_PRIVATE)
