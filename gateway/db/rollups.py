"""Coarser sums than those of `usage_rollup`, for reports over long times. Made from it for hours that are closed."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from gateway.contract.units import UNIT_NAMES
from gateway.db.metadata import METADATA, count

SUMS = ("requests", "charge_nanos", "cost_nanos", "uncosted", "gpu_us", "latency_us")
_OWNERS = ("account_id", "api_key_id")
_KINDS = ("model_id", "task", "outcome", "route")
_DIMENSIONS: dict[str, Any] = {
    "account_id": BigInteger,
    "api_key_id": BigInteger,
    "model_id": Integer,
    "task": SmallInteger,
    "outcome": SmallInteger,
    "route": Text,
}


def _sums(name: str, time: Column[Any], by: tuple[str, ...], *others: str) -> Table:
    """Describe a table of sums by hour or day and `by`, with an index for each of `others`."""
    return Table(
        name,
        METADATA,
        time,
        *(Column(each, _DIMENSIONS[each], nullable=False) for each in by),
        *(count(each) for each in (*SUMS, *UNIT_NAMES)),
        Column("latencies", Numeric, nullable=False),
        PrimaryKeyConstraint(time.name, *by),
        *(Index(f"{name}_{each}_{time.name}_idx", each, time.name) for each in others),
    )


def _day() -> Column[Any]:
    return Column("day", Date, nullable=False)


def _hour() -> Column[Any]:
    return Column("hour", DateTime(timezone=True), nullable=False)


rollup_day = _sums("rollup_day", _day(), (*_OWNERS, *_KINDS), "api_key_id", "model_id")
"""`usage_rollup` by day (UTC)."""

rollup_day_model = _sums("rollup_day_model", _day(), _KINDS)
"""`usage_rollup` by day, without accounts and keys."""

rollup_day_key = _sums("rollup_day_key", _day(), (*_OWNERS, "outcome"), "api_key_id")
"""`usage_rollup` by day, without models, tasks and routes."""

rollup_hour_model = _sums("rollup_hour_model", _hour(), _KINDS)
"""`usage_rollup` without accounts and keys."""

rollup_hour_key = _sums("rollup_hour_key", _hour(), (*_OWNERS, "outcome"), "api_key_id")
"""`usage_rollup` without models, tasks and routes."""

rollup_day_charge = Table(
    "rollup_day_charge",
    METADATA,
    _day(),
    *(Column(each, _DIMENSIONS[each], nullable=False) for each in _OWNERS),
    *(count(each) for each in ("requests", "free", "rated", "charge_nanos", *UNIT_NAMES)),
    Column("model_id", Integer, nullable=False),
    Column("price_version_id", Integer, nullable=False),
    Column("terms", JSONB),
    Index(
        "rollup_day_charge_idx",
        *("account_id", "day", "api_key_id", "model_id", "price_version_id", "terms"),
        unique=True,
        postgresql_nulls_not_distinct=True,
    ),
)
"""What statements say of closed hours, by day (UTC). `free` were charged nothing; `rated` were charged for what was
measured; units are those of requests that were charged."""

rollup_state = Table(
    "rollup_state",
    METADATA,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    Column("closed_through", DateTime(timezone=True), nullable=False, server_default=text("'-infinity'")),
    CheckConstraint("one", name="one_check"),
)
"""One row: the hours before `closed_through` are in the coarser tables; later ones stand in `usage_rollup` alone."""
