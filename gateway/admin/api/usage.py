"""`/admin/api/usage`."""

from datetime import UTC, datetime
from typing import Any

from litestar import Controller, Request, Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency

from gateway.reports.answers import AdminUsageOperation, usage_answer
from gateway.reports.query import read_admin_query, read_format
from gateway.reports.usage import UsageReport


class AdminUsageController(Controller):
    """What everyone used."""

    path = "/usage"
    tags = ("Admin",)

    @get(summary="What was used and spent, of all accounts", operation_class=AdminUsageOperation)
    async def read(
        self, request: Request[Any, Any, State], usage_report: NamedDependency[UsageReport]
    ) -> Response[Any]:
        """Answer from the hourly sums: whole hours in UTC, amounts in nanos and as exact decimals."""
        given = request.query_params
        query = read_admin_query(given, datetime.now(UTC))
        wanted = read_format(given, request.headers.get("accept", ""))
        return usage_answer(await usage_report.read(query), wanted)
