"""Requests that are open, and what is kept of requests for whoever asks again. No foreign keys: these are hot."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from gateway.db.metadata import METADATA, instant

CHURN = {
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 20_000,
    "autovacuum_vacuum_insert_threshold": -1,
    "autovacuum_vacuum_cost_delay": 0,
    "autovacuum_analyze_scale_factor": 0,
    "autovacuum_analyze_threshold": 2_000_000_000,
}
"""Rows come and go by the thousand a second: vacuum after a fixed count, and never analyse while empty."""

open_request = Table(
    "open_request",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("account_id", BigInteger, nullable=False),
    Column("api_key_id", BigInteger, nullable=False),
    Column("hold_nanos", BigInteger, nullable=False),
    instant("created_at", default_now=True),
    instant("deadline_at"),
    Column("model_id", Integer, nullable=False),
    Column("price_version_id", Integer, nullable=False),
    Column("task", SmallInteger, nullable=False),
    Column("keep", Boolean, nullable=False),
    Column("pool", Text, nullable=False),
    Column("gateway", Text, nullable=False),
    Column("tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("terms", JSONB),
    postgresql_with=CHURN,
)
"""`task` is its position in `TASKS`; `tokens` are the most that it can come to; `terms` are what its charge depends
on beside units and price version (`gateway.pricing.terms`). The row goes when the request is settled: that is the
fence."""

request_payload = Table(
    "request_payload",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("payload", LargeBinary, nullable=False),
    Column("metadata", JSONB),
    Column("webhook", Text),
    Column("webhook_events", ARRAY(Text)),
    Index("request_payload_webhook_idx", "id", postgresql_where=text("webhook is not null")),
    postgresql_with=CHURN,
)
"""The payload of an open request that outlives its gateway: asynchronous and idempotent ones. `webhook` is where its
caller wants to be told of it: such a request is always kept, so the others pay nothing for it."""

request_way = Table(
    "request_way",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("prices", ARRAY(Integer), nullable=False),
    Column("plan", LargeBinary),
    postgresql_with=CHURN,
)
"""The other ways of an open request: the price versions that it may be charged at beside its own, and for a kept one
all that the sweeper needs to put it back (`contract.request.Plan`)."""

request_output = Table(
    "request_output",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("output", LargeBinary),
    Column("detail", Text, nullable=False),
    Column("metadata", JSONB),
    Column("webhook", Text),
    instant("expires_at"),
    Index("request_output_expires_at_idx", "expires_at"),
)
"""One row per finished request with `keep`: its output (`encode_output`) or null, and what a caller may read of a
failure. `webhook` is where its end was to be told."""

idempotency = Table(
    "idempotency",
    METADATA,
    Column("account_id", BigInteger, nullable=False),
    Column("api_key_id", BigInteger, nullable=False),
    Column("key", Text, nullable=False),
    Column("request_id", Uuid, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    instant("created_at", default_now=True),
    PrimaryKeyConstraint("account_id", "api_key_id", "key"),
    Index("idempotency_created_at_idx", "created_at"),
)
"""Which request answers an idempotency key; kept 24 hours."""
