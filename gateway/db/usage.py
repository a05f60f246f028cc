"""What was used: one permanent row per finished request, and its sums per hour."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from gateway.contract.phases import Phases
from gateway.contract.units import UNIT_NAMES
from gateway.db.metadata import METADATA, count, instant, nanos

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
    Column("cost_nanos", BigInteger),
    Column("gpu_us", BigInteger, nullable=False, server_default=text("0")),
    Column("route", Text, nullable=False, server_default=text("''")),
    Column("terms", JSONB),
    CheckConstraint("charge_nanos >= 0 and charge_nanos <= hold_nanos", name="charge_check"),
    Index("usage_account_id_id_video_idx", "account_id", "id", postgresql_where=text("task in (10, 11, 12, 13)")),
    Index(
        "usage_account_id_id_media_idx",
        "account_id",
        "id",
        postgresql_where=text("task in (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)"),
    ),
    Index("usage_api_key_id_id_idx", "api_key_id", "id"),
    Index("usage_model_id_id_idx", "model_id", "id"),
    Index("usage_unsuccessful_idx", "id", postgresql_where=text("outcome <> 0")),
    Index("usage_finished_at_idx", "finished_at", postgresql_using="brin", postgresql_with={"autosummarize": "on"}),
)
"""Append-only: a trigger refuses update and delete. `task`, `outcome` and `reason` are positions in contract tuples.
`forward_began` is what the charge of a cancelled per-request price depends on; `terms` are as in `open_request`.
`cost_nanos` is what it cost the operator, null where nobody knows; `gpu_us` its share of the time of the worker that
ran it; `route` the upstream that served it, else its pool."""

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
    nanos("cost_nanos"),
    nanos("uncosted"),
    nanos("gpu_us"),
    Column("latencies", Numeric, nullable=False, server_default=text("0")),
    Column("route", Text, nullable=False, server_default=text("''")),
    PrimaryKeyConstraint("hour", "account_id", "api_key_id", "model_id", "task", "outcome", "route"),
    postgresql_with={"fillfactor": 20},
)
"""Sums over the usage rows whose `finished_at` lies in the hour (UTC), written in the same transaction.
`latency_us` sums all phases of each row, and `latencies` counts them by bucket (`ledger/sql/latency.sql`).
`uncosted` counts rows of which nobody knows the cost."""
