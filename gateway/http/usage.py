"""`GET /v1/usage`: what the calling key used and spent, as JSON or CSV."""

from datetime import UTC, datetime
from typing import Any

from litestar import Controller, Request, Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency

from gateway.flow.authenticate import identify
from gateway.flow.way import Way
from gateway.http.native.requests import secret_of
from gateway.reports.answers import OwnUsageOperation, usage_answer
from gateway.reports.query import read_format, read_own_query
from gateway.reports.usage import UsageReport


class UsageController(Controller):
    """The usage of the calling key."""

    path = "/v1/usage"
    tags = ("Usage",)

    @get(
        summary="What this key used and spent, by hour, day, model, task or outcome", operation_class=OwnUsageOperation
    )
    async def read(
        self, request: Request[Any, Any, State], way: NamedDependency[Way], usage_report: NamedDependency[UsageReport]
    ) -> Response[Any]:
        """Answer from the hourly sums: whole hours in UTC, amounts in nanos and as exact decimals."""
        caller = await identify(way.keyring, secret_of(request))
        given = request.query_params
        query = read_own_query(given, datetime.now(UTC), caller.key_id)
        wanted = read_format(given, request.headers.get("accept", ""))
        return usage_answer(await usage_report.read(query), wanted)
