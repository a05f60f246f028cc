"""The filters of the list of requests, as the address says them."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.amounts import read_count, read_usd
from gateway.admin.site.figures import usd
from gateway.contract.ids import uuid_of
from gateway.contract.tasks import TASKS
from gateway.errors import InvalidRequest
from gateway.reports.asking import page_session
from gateway.reports.ranges import Range
from gateway.reports.request_filter import RequestFilter, Wanted, digits_of
from gateway.reports.scope import Scope

OUTCOME_CHOICES = (
    ("", "Any outcome"),
    ("open", "Open now"),
    ("succeeded", "Succeeded"),
    ("unsuccessful", "Any but success"),
    ("failed", "Failed"),
    ("cancelled", "Cancelled"),
    ("expired", "Expired"),
)
LABELS = {
    "id": "Id",
    "account": "Account",
    "key": "Key",
    "model": "Model",
    "task": "Task",
    "outcome": "Outcome",
    "route": "Route",
    "retried": "Attempts",
    "charge": "Charge at least",
    "total": "Total at least",
}
FIELDS = tuple(LABELS)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the address asks for."""

    wanted: RequestFilter
    scope: Scope
    """As far as hourly sums know it."""
    is_open: bool
    """Whether open requests are asked for."""
    chips: Sequence[tuple[str, str, str]]
    """Name, label and value of each filter that is set."""
    given: Mapping[str, str]
    """The filters as they stand in the address."""
    problem: str = ""
    """Which filter names what there is not: then nothing matches."""


async def read_asked(engine: AsyncEngine, query: Mapping[str, str], during: Range) -> Asked:
    """Read the filters of an address. Raises InvalidRequest naming the parameter."""
    given = {name: query.get(name, "").strip()[:200] for name in FIELDS}
    account, key, model = await _named(engine, given)
    missing = [
        name for name, found in (("account", account), ("key", key), ("model", model)) if given[name] and not found
    ]
    outcome, task = given["outcome"], given["task"]
    if outcome and outcome not in {"open", *get_args(Wanted)}:
        raise InvalidRequest(
            "'outcome' is open, succeeded, unsuccessful, failed, cancelled or expired.", param="outcome"
        )
    if task and task not in TASKS:
        raise InvalidRequest("'task' is one of the tasks of the catalog.", param="task")
    digits = digits_of(given["id"]) if given["id"] else ""
    if digits is None:
        raise InvalidRequest("'id' is an id of a request, or how one begins: req_ and hexadecimal digits.", param="id")
    wanted = RequestFilter(
        range=during,
        id_prefix=digits,
        account_id=account[0] if account else None,
        key_id=key[0] if key else None,
        model_id=model[0] if model else None,
        task=task or None,
        outcome=outcome if outcome in get_args(Wanted) else None,  # type: ignore[arg-type]
        route=given["route"] or None,
        retried=bool(given["retried"]),
        charge_at_least=read_usd(given["charge"], "charge") if given["charge"] else None,
        total_at_least_ms=read_count(given["total"], "total") if given["total"] else None,
        after=_after(query.get("after", "")),
    )
    shown = given | {name: found[1] for name, found in (("account", account), ("key", key), ("model", model)) if found}
    return Asked(
        wanted=wanted,
        scope=_scope(wanted, model[1] if model else None),
        is_open=outcome == "open",
        given={name: value for name, value in given.items() if value},
        chips=[(name, LABELS[name], _shown(name, shown[name])) for name in FIELDS if given[name]],
        problem=f"There is no {missing[0]} “{given[missing[0]]}”." if missing else "",
    )


def _scope(wanted: RequestFilter, model: str | None) -> Scope:
    outcomes = {"succeeded": 0, "failed": 1, "cancelled": 2, "expired": 3}
    return Scope(
        account_id=wanted.account_id,
        key_id=wanted.key_id,
        model=model,
        task=TASKS.index(wanted.task) if wanted.task else None,
        outcome=outcomes.get(wanted.outcome or ""),
        route=wanted.route,
    )


def _shown(name: str, value: str) -> str:
    if name == "retried":
        return "more than 1"
    if name == "charge":
        return usd(read_usd(value, "charge"))
    return f"{value} ms" if name == "total" else dict(OUTCOME_CHOICES).get(value, value) if name == "outcome" else value


def _after(text: str) -> UUID | None:
    try:
        return uuid_of(text) if text else None
    except ValueError:
        raise InvalidRequest("'after' is the id that the page before ended with.", param="after") from None


_QUERY = """select
  (select array[id::text, name] from account where id::text = $1 or name = $1
    order by id::text <> $1 limit 1) as account,
  (select array[id::text, coalesce(nullif(name, ''), prefix)] from api_key
    where id::text = $2 or prefix = left($2, 12) or name = $2
    order by id::text <> $2, prefix <> left($2, 12), id limit 1) as key,
  (select array[id::text, name] from model where name = $3) as model"""


async def _named(engine: AsyncEngine, given: Mapping[str, str]) -> Any:
    """Find the account, the key and the model that filters name, each by its number or its name."""
    if not (given["account"] or given["key"] or given["model"]):
        return None, None, None
    async with page_session(engine) as session:
        row = await session.fetchrow(_QUERY, given["account"], given["key"], given["model"])
    assert row is not None
    names = ("account", "key", "model")
    return tuple((int(row[name][0]), row[name][1]) if given[name] and row[name] else None for name in names)
