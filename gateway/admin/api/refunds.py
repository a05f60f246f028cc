"""`/admin/api/refunds` and `/admin/api/requests/{id}/refunds`."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter

from gateway.admin.api.bodies import GiveRefund, RefundList
from gateway.admin.api.keys import OfAccount
from gateway.errors import InvalidRequest
from gateway.ledger.audit import Actor
from gateway.ledger.records import Refund, RequestRefunds
from gateway.ledger.refunds import MAX_PAGE, NewRefund, Refunds

RequestId = Annotated[str, PathParameter(description="`req_` and 32 hexadecimal digits")]
Limit = Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)]
After = Annotated[str, QueryParameter(description="The `next_after` of the page before.")]


class RefundsController(Controller):
    """What was given back of charges."""

    path = "/"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @post("/requests/{request_id:str}/refunds", summary="Give a charge back, or a part of it, with the reason")
    async def give(
        self,
        request_id: RequestId,
        data: JSONBody[GiveRefund],
        refunds: NamedDependency[Refunds],
        by: NamedDependency[Actor],
    ) -> Refund:
        """Book a refund, once for each transaction id."""
        wanted = NewRefund(
            request_id=request_id,
            amount_nanos=data.amount_nanos,
            reason=data.reason,
            transaction_id=data.transaction_id,
        )
        return await refunds.give(wanted, by=by)

    @get("/requests/{request_id:str}/refunds", summary="A request's charge, and what of it was given back")
    async def of_request(self, request_id: RequestId, refunds: NamedDependency[Refunds]) -> RequestRefunds:
        """Show the refunds of one request."""
        return await refunds.of_request(request_id)

    @get("/refunds", summary="All refunds, the latest first")
    async def list_refunds(
        self,
        refunds: NamedDependency[Refunds],
        account_id: OfAccount = None,
        after: After = "",
        limit: Limit = 100,
    ) -> RefundList:
        """List one page of refunds, of one account or of all."""
        page = await refunds.list(account_id=account_id, before=_place(after) if after else None, limit=limit)
        return RefundList(refunds=list(page), next_after=_written(page[-1]) if len(page) == limit else None)


def _written(last: Refund) -> str:
    return f"{last.at.isoformat()}_{last.id}"


def _place(after: str) -> tuple[datetime, UUID]:
    at, _, number = after.partition("_")
    try:
        return msgspec.convert(at, datetime), UUID(number)
    except (msgspec.ValidationError, ValueError):
        raise InvalidRequest("'after' is the 'next_after' of the page before.", param="after") from None
