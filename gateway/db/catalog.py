"""What can be called, where it runs, and what it costs."""

from sqlalchemy import Boolean, CheckConstraint, Column, ForeignKey, Identity, Index, Integer, Table, Text, text
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

price_version = Table(
    "price_version",
    METADATA,
    Column("id", Integer, Identity(), primary_key=True),
    Column("model_id", Integer, ForeignKey("model.id"), nullable=False),
    Column("components", JSONB, nullable=False),
    instant("valid_from"),
    instant("created_at", default_now=True),
    Column("source", Text, nullable=False),
    Index("price_version_model_id_valid_from_idx", "model_id", "valid_from"),
)
"""Append-only: a price is never edited, only superseded. A trigger refuses update and delete."""

revision = Table(
    "revision",
    METADATA,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    nanos("keys"),
    nanos("catalog"),
    CheckConstraint("one", name="one_check"),
)
"""One row. `keys` and `catalog` are raised in the transaction that changes accounts and keys, or the catalog."""
