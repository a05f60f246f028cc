"""What can be called, where it runs, and what it costs."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from gateway.db.metadata import METADATA, instant, instant_or_null, nanos

model = Table(
    "model",
    METADATA,
    Column("id", Integer, Identity(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("spec", JSONB, nullable=False),
    instant_or_null("withdrawn_at"),
)

pool = Table(
    "pool",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("spec", JSONB, nullable=False),
)

upstream = Table(
    "upstream",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("spec", JSONB, nullable=False),
)

price_version = Table(
    "price_version",
    METADATA,
    Column("id", Integer, Identity(), primary_key=True),
    Column("model_id", Integer, ForeignKey("model.id"), nullable=False),
    Column("components", JSONB, nullable=False),
    instant("valid_from"),
    instant("created_at", default_now=True),
    Column("source", Text, nullable=False),
    Column("outcome", JSONB),
    Column("price_list_id", BigInteger, ForeignKey("price_list.id")),
    nanos("minimum_nanos"),
    Column("free", Boolean, nullable=False, server_default=text("false")),
    Column("door", Text, nullable=False, server_default=text("'file'")),
    Column("author", Text, nullable=False, server_default=text("''")),
    Column("reason", Text, nullable=False, server_default=text("''")),
    Index("price_version_model_id_valid_from_idx", "model_id", "valid_from"),
)
"""Append-only: a price is never edited, only superseded. A trigger refuses update and delete. `outcome` is the
outcome policy of this version; null where an older release wrote it: then that of the model counts. `price_list_id`
is null for the list price; `door` is where it came in: file, dashboard or api; `free` says that zero is meant."""

price_list = Table(
    "price_list",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    instant("created_at", default_now=True),
)
"""Prices for some accounts only. A model without a version in an account's list costs its list price."""

price_cancellation = Table(
    "price_cancellation",
    METADATA,
    Column("price_version_id", Integer, primary_key=True, autoincrement=False),
    instant("cancelled_at", default_now=True),
    Column("author", Text, nullable=False),
    Column("reason", Text, nullable=False, server_default=text("''")),
)
"""Versions that were called off before they came into force. Append-only."""

backtest = Table(
    "backtest",
    METADATA,
    Column("id", Uuid, primary_key=True),
    instant("created_at", default_now=True),
    instant("updated_at", default_now=True),
    instant_or_null("finished_at"),
    Column("draft", JSONB, nullable=False),
    Column("digest", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'waiting'")),
    nanos("rows_done"),
    nanos("rows_in_all"),
    Column("result", JSONB),
    Index("backtest_created_at_idx", "created_at"),
)
"""Drafts of prices held against past usage. `state`: waiting, running, done, failed or cancelled; `digest` is the
draft's."""

revision = Table(
    "revision",
    METADATA,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    nanos("keys"),
    nanos("catalog"),
    CheckConstraint("one", name="one_check"),
)
"""One row. `keys` and `catalog` are raised in the transaction that changes accounts and keys, or the catalog."""
