"""Usage reports over HTTP: the answer in either format, and the parameters as the API page shows them."""

from dataclasses import dataclass
from typing import Any

from litestar import Response
from litestar.openapi.spec import Operation, Parameter, Schema
from litestar.openapi.spec.enums import OpenAPIType

from gateway.contract.states import OUTCOMES
from gateway.contract.tasks import TASKS
from gateway.reports.csv_text import csv_of
from gateway.reports.query import ADMIN_PARAMETERS, OWN_PARAMETERS, Format
from gateway.reports.scope import DIMENSIONS
from gateway.reports.table import UsageTable

_TEXT = Schema(type=OpenAPIType.STRING)
_NUMBER = Schema(type=OpenAPIType.INTEGER, minimum=1)

_DESCRIBED: dict[str, tuple[str, Schema]] = {
    "from": ("A date or an instant (ISO 8601, UTC where it names no zone); without it, 30 days before `to`.", _TEXT),
    "to": ("A date or an instant, exclusive; without it, now. Both are widened to whole hours.", _TEXT),
    "group_by": (f"Any of {', '.join(DIMENSIONS)}, separated by commas; without it, one row for all.", _TEXT),
    "model": ("Only this model, by its name.", _TEXT),
    "task": ("Only this task.", Schema(type=OpenAPIType.STRING, enum=list(TASKS))),
    "outcome": ("Only this outcome.", Schema(type=OpenAPIType.STRING, enum=list(OUTCOMES))),
    "format": ("`json` or `csv`; without it, as `Accept` says.", Schema(type=OpenAPIType.STRING, enum=["json", "csv"])),
    "account": ("Only this account, by its number.", _NUMBER),
    "key": ("Only this key, by its number.", _NUMBER),
    "route": ("Only requests of this route: an upstream's name, else a pool's.", _TEXT),
}


def _documented(names: tuple[str, ...]) -> list[Any]:
    return [
        Parameter(
            name=name, param_in="query", required=False, description=_DESCRIBED[name][0], schema=_DESCRIBED[name][1]
        )
        for name in names
    ]


@dataclass
class OwnUsageOperation(Operation):
    """The operation of a key's own report, with its parameters."""

    def __post_init__(self) -> None:
        """Add what the handler reads by itself, because it refuses unknown names."""
        self.parameters = _documented(OWN_PARAMETERS)


@dataclass
class AdminUsageOperation(Operation):
    """The operation of an operator's report, with its parameters."""

    def __post_init__(self) -> None:
        """Add what the handler reads by itself, because it refuses unknown names."""
        self.parameters = _documented(ADMIN_PARAMETERS)


def usage_answer(table: UsageTable, wanted: Format) -> Response[Any]:
    """Answer a report in the wanted format."""
    headers = {"cache-control": "no-store"}
    if wanted == "json":
        return Response(table, headers=headers)
    name = f"usage-{table.from_at:%Y%m%dT%H}-{table.to_at:%Y%m%dT%H}.csv"
    headers["content-disposition"] = f'attachment; filename="{name}"'
    return Response(csv_of(table), media_type="text/csv; charset=utf-8", headers=headers)
