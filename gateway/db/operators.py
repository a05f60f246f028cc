"""Who is signed in to the dashboard, and who changed what."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from gateway.db.metadata import METADATA, instant, instant_or_null

web_session = Table(
    "web_session",
    METADATA,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("api_key_id", BigInteger),
    instant("created_at", default_now=True),
    instant("last_seen_at", default_now=True),
    instant("expires_at"),
    instant_or_null("ended_at"),
    Column("kind", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("csrf", Text, nullable=False),
    Index("web_session_expires_at_idx", "expires_at"),
)
"""`token_hash` is the SHA-256 of what the cookie holds. `kind` is operator or owner; of an owner, `api_key_id` is
the key."""

audit = Table(
    "audit",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    instant("at", default_now=True),
    Column("actor", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("door", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("object_kind", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("changes", JSONB, nullable=False),
    Column("request_id", Text, nullable=False, server_default=text("''")),
    Index("audit_object_kind_object_id_id_idx", "object_kind", "object_id", "id"),
    Index("audit_actor_id_idx", "actor", "id"),
)
"""Every change by an operator, written in its transaction. `door`: dashboard, api, cli or file; `changes` maps each
field to [before, after]. Append-only."""

pool_order = Table(
    "pool_order",
    METADATA,
    Column("pool", Text, nullable=False),
    Column("worker", Text, nullable=False),
    Column("stands", Boolean, nullable=False),
    instant("at", default_now=True),
    instant("seen_at", default_now=True),
    Column("actor", Text, nullable=False),
    PrimaryKeyConstraint("pool", "worker"),
)
"""What operators told a pool (`worker` is empty) or one of its workers: to take nothing more while it `stands`, and to
go on where it was lifted. Redis has a copy, which is made like this one. `seen_at`: when the worker was last there."""
