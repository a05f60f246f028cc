"""What a usage report is asked for, read from the parameters of an address."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from gateway.contract.states import OUTCOMES
from gateway.contract.tasks import TASKS
from gateway.errors import InvalidRequest
from gateway.reports.ranges import Range, read_range
from gateway.reports.scope import DIMENSIONS, EVERYTHING, Dimension, Scope

Format = Literal["json", "csv"]

OWN_PARAMETERS = ("from", "to", "group_by", "model", "task", "outcome", "format")
ADMIN_PARAMETERS = (*OWN_PARAMETERS, "account", "key", "route")
CLOSED_TO_KEYS: tuple[Dimension, ...] = ("account", "route")
"""What a key's own report cannot be grouped by: it has one account, and routes are the operator's affair."""

MAX_ID = 2**63 - 1


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A usage report: what range, grouped how, and of whom."""

    range: Range
    group_by: tuple[Dimension, ...] = ()
    scope: Scope = EVERYTHING
    with_costs: bool = False
    """Whether it says what requests cost the operator: not to who owns a key."""


def read_own_query(given: Mapping[str, str], now: datetime, key_id: int) -> UsageQuery:
    """Read a key's question about itself: the key is the only owner it can ask about. Raises InvalidRequest."""
    _refuse_unknown(given, OWN_PARAMETERS)
    query = _read(given, now)
    for closed in CLOSED_TO_KEYS:
        if closed in query.group_by:
            raise InvalidRequest(f"A key's own report cannot be grouped by {closed}.", param="group_by")
    return msgspec.structs.replace(query, scope=msgspec.structs.replace(query.scope, key_id=key_id))


def read_admin_query(given: Mapping[str, str], now: datetime) -> UsageQuery:
    """Read an operator's question about everyone. Raises InvalidRequest."""
    _refuse_unknown(given, ADMIN_PARAMETERS)
    query = _read(given, now)
    scope = msgspec.structs.replace(
        query.scope, account_id=read_id(given, "account"), key_id=read_id(given, "key"), route=read_name(given, "route")
    )
    return msgspec.structs.replace(query, scope=scope, with_costs=True)


def read_format(given: Mapping[str, str], accept: str) -> Format:
    """Choose the format: the parameter `format`, else what is accepted. Raises InvalidRequest."""
    wanted = given.get("format")
    if wanted is None:
        return "csv" if accept.split(",")[0].split(";")[0].strip().lower() == "text/csv" else "json"
    if wanted not in ("json", "csv"):
        raise InvalidRequest("'format' must be json or csv.", param="format")
    return "csv" if wanted == "csv" else "json"


def _read(given: Mapping[str, str], now: datetime) -> UsageQuery:
    return UsageQuery(
        range=read_range(given.get("from"), given.get("to"), now),
        group_by=_group_by(given.get("group_by", "")),
        scope=Scope(
            model=read_name(given, "model"),
            task=position_of(given, "task", TASKS),
            outcome=position_of(given, "outcome", OUTCOMES),
        ),
    )


def _refuse_unknown(given: Mapping[str, str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise InvalidRequest(
                f"There is no parameter {name!r} here; there are {', '.join(known)}.",
                code="unknown_parameter",
                param=name,
            )


def _group_by(text: str) -> tuple[Dimension, ...]:
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in DIMENSIONS:
            raise InvalidRequest(
                f"'group_by' takes {', '.join(DIMENSIONS)}, separated by commas; not {name!r}.", param="group_by"
            )
    return tuple(dimension for dimension in DIMENSIONS if dimension in names)


def position_of(given: Mapping[str, str], param: str, values: Sequence[str]) -> int | None:
    """Read a parameter that is one of `values`, as its position there. Raises InvalidRequest."""
    text = given.get(param)
    if text is None:
        return None
    if text not in values:
        raise InvalidRequest(f"{param!r} must be one of {', '.join(values)}.", param=param)
    return values.index(text)


def read_name(given: Mapping[str, str], param: str) -> str | None:
    """Read a parameter that is a name. Raises InvalidRequest."""
    text = given.get(param)
    if text is not None and not text.isprintable():
        raise InvalidRequest(f"{param!r} must be a name.", param=param)
    return text


def read_id(given: Mapping[str, str], param: str) -> int | None:
    """Read a parameter that is the number of an account or a key. Raises InvalidRequest."""
    text = given.get(param)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) <= MAX_ID):
        raise InvalidRequest(
            f"{param!r} must be the number of {'an account' if param == 'account' else 'a key'}.", param=param
        )
    return int(text)
