"""What a usage report is asked for, read from the parameters of an address."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, get_args

import msgspec

from gateway.contract.states import OUTCOMES
from gateway.contract.tasks import TASKS
from gateway.errors import InvalidRequest
from gateway.reports.ranges import Range, read_range

Dimension = Literal["day", "hour", "account", "key", "model", "task", "outcome"]
"""What a report can be grouped by."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

Format = Literal["json", "csv"]

OWN_PARAMETERS = ("from", "to", "group_by", "model", "task", "outcome", "format")
ADMIN_PARAMETERS = (*OWN_PARAMETERS, "account", "key")
MAX_ID = 2**63 - 1


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A usage report: what range, grouped how, and of whom. None does not filter."""

    range: Range
    group_by: tuple[Dimension, ...] = ()
    model: str | None = None
    task: int | None = None
    """Its position in `TASKS`."""
    outcome: int | None = None
    """Its position in `OUTCOMES`."""
    account_id: int | None = None
    key_id: int | None = None


def read_own_query(given: Mapping[str, str], now: datetime, key_id: int) -> UsageQuery:
    """Read a key's question about itself: the key is the only owner it can ask about. Raises InvalidRequest."""
    _refuse_unknown(given, OWN_PARAMETERS)
    query = _read(given, now)
    if "account" in query.group_by:
        raise InvalidRequest("A key's report is of one account; it cannot be grouped by account.", param="group_by")
    return msgspec.structs.replace(query, key_id=key_id)


def read_admin_query(given: Mapping[str, str], now: datetime) -> UsageQuery:
    """Read an operator's question about everyone. Raises InvalidRequest."""
    _refuse_unknown(given, ADMIN_PARAMETERS)
    query = _read(given, now)
    return msgspec.structs.replace(query, account_id=_id(given, "account"), key_id=_id(given, "key"))


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
        model=_name(given, "model"),
        task=_position(given, "task", TASKS),
        outcome=_position(given, "outcome", OUTCOMES),
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


def _position(given: Mapping[str, str], param: str, values: Sequence[str]) -> int | None:
    text = given.get(param)
    if text is None:
        return None
    if text not in values:
        raise InvalidRequest(f"{param!r} must be one of {', '.join(values)}.", param=param)
    return values.index(text)


def _name(given: Mapping[str, str], param: str) -> str | None:
    text = given.get(param)
    if text is not None and not text.isprintable():
        raise InvalidRequest(f"{param!r} must be a name.", param=param)
    return text


def _id(given: Mapping[str, str], param: str) -> int | None:
    text = given.get(param)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) <= MAX_ID):
        raise InvalidRequest(
            f"{param!r} must be the number of {'an account' if param == 'account' else 'a key'}.", param=param
        )
    return int(text)
