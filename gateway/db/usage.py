"""What was used: one permanent row per finished request, and its sums per hour."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
)

from gateway.contract.phases import Phases
from gateway.contract.units import UNIT_NAMES
from gateway.db.metadata import METADATA, count, instant

PHASE_COLUMNS: tuple[str, ...] = Phases.__struct_fields__

usage = Table(
    "usage",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("account_id", BigInteger, nullable=False),
    Column("api_key_id", BigInteger, nullable=False),
    instant("created_at"),
    instant("finished_at"),
    Column("hold_nanos", BigInteger, nullable=False),
    Column("charge_nanos", BigInteger, nullable=False),
    *(count(name) for name in UNIT_NAMES),
    *(count(name) for name in PHASE_COLUMNS),
    Column("model_id", Integer, nullable=False),
    Column("price_version_id", Integer, nullable=False),
    Column("task", SmallInteger, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("reason", SmallInteger, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("forward_began", Boolean, nullable=False),
    Column("pool", Text, nullable=False),
    Column("worker", Text, nullable=False),
    CheckConstraint("charge_nanos >= 0 and charge_nanos <= hold_nanos", name="charge_check"),
)
"""Append-only: a trigger refuses update and delete. `task`, `outcome` and `reason` are positions in contract tuples.
`forward_began` is what the charge of a cancelled per-request price depends on."""

usage_rollup = Table(
    "usage_rollup",
    METADATA,
    Column("hour", DateTime(timezone=True), nullable=False),
    Column("account_id", BigInteger, nullable=False),
    Column("api_key_id", BigInteger, nullable=False),
    Column("model_id", Integer, nullable=False),
    Column("task", SmallInteger, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    count("requests"),
    count("charge_nanos"),
    count("latency_us"),
    *(count(name) for name in UNIT_NAMES),
    PrimaryKeyConstraint("hour", "account_id", "api_key_id", "model_id", "task", "outcome"),
    postgresql_with={"fillfactor": 20},
)
"""Sums over the usage rows whose `finished_at` lies in the hour (UTC), written in the same transaction.
`latency_us` sums all phases of each row."""
