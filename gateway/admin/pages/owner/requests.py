"""An owner's requests: the same list and story as operators see, without cost, margin, routes and workers."""

from datetime import datetime
from typing import Any, get_args
from uuid import UUID

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.amounts import read_count, read_usd
from gateway.admin.pages.requests.bill import bill_of
from gateway.admin.pages.requests.detail import REASONS, TONES
from gateway.admin.site.cards import cards
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.contract.ids import uuid_of
from gateway.contract.phases import PHASE_NAMES
from gateway.contract.tasks import TASKS
from gateway.contract.units import UNIT_NAMES
from gateway.errors import InvalidRequest
from gateway.reports.asking import page_session
from gateway.reports.figures import Figures
from gateway.reports.request_filter import RequestFilter, Wanted, digits_of
from gateway.reports.request_list import PAGE, RequestRow, list_requests
from gateway.reports.request_story import Story, read_story
from gateway.reports.scope import Scope, Sums

FIELDS = {
    "id": "Id",
    "model": "Model",
    "task": "Task",
    "outcome": "Outcome",
    "charge": "Charge at least",
    "total": "Total at least",
}
CSV_COLUMNS = (
    "id", "created_at", "finished_at", "model", "task", "outcome", "reason", "queue_us", "total_us", "charge_nanos",
    "refunded_nanos",
)  # fmt: skip
_NO_MODEL = 0
"""No model has this number: a name that is none finds nothing."""


@page("/usage/requests", needs="key", data=False)
async def show_own_requests(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """List the requests of the session's key."""
    wanted = await read_own_filter(engine, view)
    found: dict[str, Any] = await cards(
        view.page_id,
        rows=list_requests(engine, wanted, limit=PAGE + 1),
        total=_total(engine, view, wanted),
        models=_models(engine, view),
    )
    chips = [(name, label, view.query[name]) for name, label in FIELDS.items() if view.query.get(name)]
    return view.render(
        "owner/requests.html",
        most=PAGE,
        chips=chips,
        tasks=TASKS,
        outcomes=get_args(Wanted),
        tones=TONES,
        counted=wanted.is_counted,
        **found,
    )


@page("/usage/requests/{request_id:str}", needs="key", data=False)
async def show_own_request(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], request_id: FromPath[str]
) -> Response[Any]:
    """Show one request of the session's key; of another key it is 404, as if there were none."""
    story = await read_story(engine, request_id, key_id=view.visitor.api_key_id)
    if view.wants_data:
        return view.json(_own_story(story))
    return view.render(
        "owner/request.html",
        story=story,
        end=story.end,
        bill=bill_of(story),
        reasons=REASONS,
        tones=TONES,
        units=_measured(story),
        phases=_phases(story),
    )


async def read_own_filter(engine: AsyncEngine, view: View) -> RequestFilter:
    """Read the filters of an address; the key is the session's. Raises InvalidRequest naming the parameter."""
    given = {name: view.query.get(name, "").strip()[:200] for name in FIELDS}
    if given["task"] and given["task"] not in TASKS:
        raise InvalidRequest("'task' is one of the tasks of the catalog.", param="task")
    if given["outcome"] and given["outcome"] not in get_args(Wanted):
        raise InvalidRequest(f"'outcome' is one of {', '.join(get_args(Wanted))}.", param="outcome")
    digits = digits_of(given["id"]) if given["id"] else ""
    if digits is None:
        raise InvalidRequest("'id' is an id of a request, or how one begins.", param="id")
    return RequestFilter(
        range=view.period.range,
        key_id=view.visitor.api_key_id,
        id_prefix=digits,
        model_id=await _model_id(engine, given["model"]) if given["model"] else None,
        task=given["task"] or None,
        outcome=given["outcome"] or None,  # type: ignore[arg-type]  # checked above
        charge_at_least=read_usd(given["charge"], "charge") if given["charge"] else None,
        total_at_least_ms=read_count(given["total"], "total") if given["total"] else None,
        after=_after(view.query.get("after", "")),
    )


def _after(text: str) -> UUID | None:
    try:
        return uuid_of(text) if text else None
    except ValueError:
        raise InvalidRequest("'after' is the id that the page before ended with.", param="after") from None


async def _model_id(engine: AsyncEngine, name: str) -> int:
    async with page_session(engine) as session:
        return await session.fetchval("select id from model where name = $1", name) or _NO_MODEL


async def _models(engine: AsyncEngine, view: View) -> list[str]:
    """Give the models that the key called in the range, for the filter."""
    scope = Scope(key_id=view.visitor.api_key_id)
    table = await Figures(engine).table(view.period.range, scope, by="model", limit=200)
    return sorted(row.model for row in table.rows if row.model)


async def _total(engine: AsyncEngine, view: View, wanted: RequestFilter) -> Sums | None:
    """Give the sums of the whole range; None where hourly sums do not know the filter."""
    if not wanted.is_counted:
        return None
    outcomes = ("succeeded", "failed", "cancelled", "expired")
    scope = Scope(
        key_id=wanted.key_id,
        model=view.query.get("model") or None,
        task=TASKS.index(wanted.task) if wanted.task else None,
        outcome=outcomes.index(wanted.outcome) if wanted.outcome else None,
    )
    return await Figures(engine).totals(view.period.range, scope)


def _measured(story: Story) -> list[tuple[str, int]]:
    if story.end is None:
        return []
    return [(name.replace("_", " "), count) for name in UNIT_NAMES if (count := getattr(story.end.units, name))]


def _phases(story: Story) -> list[tuple[str, int]]:
    if story.end is None:
        return []
    return [(name, us) for name in PHASE_NAMES if (us := getattr(story.end.phases, f"{name}_us"))]


def _own_story(story: Story) -> dict[str, Any]:
    """Give what an owner may know of a request, as data."""
    told: dict[str, Any] = {
        "id": story.id,
        "model": story.model,
        "task": story.task,
        "created_at": story.created_at,
        "hold_nanos": story.hold_nanos,
        "price_version": story.price.id,
        "charge_nanos": story.charge_nanos,
        "refunded_nanos": story.refunded_nanos,
        "total_us": story.total_us,
    }
    if story.end is not None:
        told |= {
            "finished_at": story.end.finished_at,
            "outcome": story.end.outcome,
            "reason": story.end.reason,
            "usage": dict(_measured(story)),
            "phases_us": dict(_phases(story)),
            "bill": bill_of(story),
        }
    return told


def own_cells(row: RequestRow) -> list[object]:
    """Give what an owner may know of a listed request."""
    values = [getattr(row, name) for name in CSV_COLUMNS]
    return [value.isoformat() if isinstance(value, datetime) else value for value in values]
