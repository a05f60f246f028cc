"""Writes the statement that answers a question. Names in it come from here; values are parameters."""

from typing import Any

from gateway.contract.states import OUTCOMES
from gateway.contract.tasks import TASKS
from gateway.contract.units import UNIT_NAMES
from gateway.reports.pieces import DAILY, Piece
from gateway.reports.scope import Dimension, Question

MONEY = ("requests", "charge_nanos", "cost_nanos", "uncosted")
TIMES = ("gpu_us", "latency_us")
SPENT = ("requests", "charge_nanos")
"""All that is asked of very many groups."""
COLUMN: dict[Dimension, str] = {
    "day": "hour",
    "hour": "hour",
    "account": "account_id",
    "key": "api_key_id",
    "model": "model_id",
    "task": "task",
    "outcome": "outcome",
    "route": "route",
}
ERRORS = f"({OUTCOMES.index('failed')}, {OUTCOMES.index('expired')})"
_ORDERS = {
    "charge": "charge_nanos",
    "requests": "requests",
    "errors": "errors",
    "cost": "cost_nanos",
    "margin": "charge_nanos - cost_nanos",
}
_NAMES: dict[Dimension, str] = {
    "account": "(select a.name from account a where a.id = g.account) as account_name",
    "key": (
        "(select k.name from api_key k where k.id = g.key) as key_name, "
        "(select k.prefix from api_key k where k.id = g.key) as key_prefix"
    ),
    "model": "(select m.name from model m where m.id = g.model) as model_name",
}
_NOON = "date_trunc('day', hour, 'UTC') + interval '12 hours'"
_POSITIONS: dict[Dimension, tuple[Any, ...]] = {"task": TASKS, "outcome": OUTCOMES}


class Statement:
    """A statement and its parameters, as they are put together."""

    def __init__(self) -> None:
        self.arguments: list[Any] = []

    def put(self, value: Any, kind: str) -> str:
        """Add a parameter; answers how the statement names it."""
        self.arguments.append(value)
        return f"${len(self.arguments)}::{kind}"


def compose(question: Question, parts: list[Piece], statement: Statement) -> str:
    """Write the whole statement, with names beside ids."""
    names = "".join(f", {_NAMES[each]}" for each in question.group_by if each in _NAMES)
    text = f"select g.*{names} from ({grouped(question, parts, statement)}) g {_order(question)}"
    return text if question.limit is None else f"{text} limit {statement.put(question.limit, 'bigint')}"


def summed_of(question: Question) -> tuple[str, ...]:
    """Name the sums that a question asks for, beside units and counts."""
    return (*MONEY, *TIMES) if question.latencies else MONEY


def grouped(question: Question, parts: list[Piece], statement: Statement, summed: tuple[str, ...] | None = None) -> str:
    """Write the sums of each group, without names and order. Without groups there is one row, also of nothing."""
    summed = summed_of(question) if summed is None else summed
    dimensions = [f"{_dimension(each, question, statement)} as {each}" for each in question.group_by]
    units = UNIT_NAMES if question.units else ()
    sums = [f"coalesce(sum({name}), 0)::bigint as {name}" for name in (*summed, *units)]
    errors = f"coalesce(sum(requests) filter (where outcome in {ERRORS}), 0)::bigint as errors"
    counts = ["coalesce(sum(latencies), 0) as latencies"] if question.latencies else []
    rows = " union all ".join(_rows(piece, question, statement, summed) for piece in parts)
    by = f" group by {', '.join(str(place + 1) for place in range(len(dimensions)))}" if dimensions else ""
    if any(piece.moved for piece in parts):
        by += " having sum(requests) > 0"  # days that all has been moved out of
    columns = ", ".join([*dimensions, *sums, errors, *counts])
    return f"select {columns} from ({rows}) r{by}"


def _rows(piece: Piece, question: Question, statement: Statement, summed: tuple[str, ...]) -> str:
    counted = [*summed, *(UNIT_NAMES if question.units else ()), *(["latencies"] if question.latencies else [])]
    daily = piece.source in DAILY
    hour = "(day + time '12:00') at time zone 'UTC' as hour" if daily else "hour"
    source: str = piece.source
    if piece.moved:
        counted = [f"moved.sign * {column} as {column}" for column in counted]
        hour = "moved.at as hour"
        source += f", lateral (values (1, hour), (-1, {_NOON})) moved (sign, at)"
    grouped_by = dict.fromkeys(COLUMN[each] for each in question.group_by)
    columns = ["outcome", *counted]
    columns += [hour if column == "hour" else column for column in grouped_by if column != "outcome"]
    if piece.moved:
        held = [f"hour = any({statement.put(piece.moved, 'timestamptz[]')})"]
    elif daily:
        first = statement.put(piece.range.from_at.date(), "date")
        end = statement.put(piece.range.to_at.date(), "date")
        held = [f"day >= {first}", f"day < {end}"]
    else:
        first = statement.put(piece.range.from_at, "timestamptz")
        end = statement.put(piece.range.to_at, "timestamptz")
        held = [f"hour >= {first}", f"hour < {end}"]
    held += _filters(question, statement)
    return f"select {', '.join(columns)} from {source} where {' and '.join(held)}"


def _filters(question: Question, statement: Statement) -> list[str]:
    scope = question.scope
    filters = []
    if scope.account_id is not None:
        filters.append(f"account_id = {statement.put(scope.account_id, 'bigint')}")
    if scope.key_id is not None:
        key = statement.put(scope.key_id, "bigint")
        filters.append(f"api_key_id = {key}")
        if scope.account_id is None:  # which indexes begin with, after the time
            filters.append(f"account_id = (select k.account_id from api_key k where k.id = {key})")
    if scope.model is not None:
        filters.append(f"model_id = (select m.id from model m where m.name = {statement.put(scope.model, 'text')})")
    if scope.task is not None:
        filters.append(f"task = {statement.put(scope.task, 'smallint')}")
    if scope.outcome is not None:
        filters.append(f"outcome = {statement.put(scope.outcome, 'smallint')}")
    if scope.route is not None:
        filters.append(f"route = {statement.put(scope.route, 'text')}")
    return filters


def _dimension(dimension: Dimension, question: Question, statement: Statement) -> str:
    if dimension == "day":
        return f"date_trunc('day', hour, {statement.put(question.zone_name, 'text')})"
    column = COLUMN[dimension]
    if question.among is not None and question.among[0] == dimension:
        kind = "text[]" if dimension == "route" else "bigint[]"
        values = [_POSITIONS[dimension].index(each) if dimension in _POSITIONS else each for each in question.among[1]]
        return f"case when {column} = any({statement.put(values, kind)}) then {column} end"
    return column


def _order(question: Question) -> str:
    if question.order is None:
        shown = {"model": "model_name"}
        keys = [shown.get(each, each) for each in question.group_by]
    else:
        down = " desc" if question.order.startswith("-") else ""
        keys = [f"{_ORDERS[question.order.lstrip('-')]}{down}", *question.group_by]
    return f"order by {', '.join(keys)}" if keys else ""
