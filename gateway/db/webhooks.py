"""The outbox of webhooks, every try to deliver them, and the secrets that sign them."""

from typing import Literal, get_args

from sqlalchemy import (
    BigInteger,
    Column,
    Identity,
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

from gateway.db.metadata import METADATA, instant, instant_or_null

WebhookKind = Literal["started", "progress", "completed"]
"""What a webhook tells. Stored as its position in `WEBHOOK_KINDS`, which is also the order in which they are told."""

WEBHOOK_KINDS: tuple[WebhookKind, ...] = get_args(WebhookKind)

webhook_event = Table(
    "webhook_event",
    METADATA,
    Column("request_id", Uuid, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("number", SmallInteger, nullable=False),
    Column("account_id", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("host", Text, nullable=False),
    instant("created_at", default_now=True),
    instant_or_null("due_at"),
    instant_or_null("delivered_at"),
    Column("tries", SmallInteger, nullable=False, server_default=text("0")),
    Column("round", SmallInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("request_id", "kind", "number"),
    Index("webhook_event_due_idx", "host", "due_at", postgresql_where=text("due_at is not null")),
    Index("webhook_event_account_id_idx", "account_id", "created_at"),
    Index("webhook_event_created_at_idx", "created_at"),
)
"""`number` is 0, and the per cent of a progress. While `due_at` is set the event is to be told: then, or not before
then, because a sender has it on lease. Else it was delivered, or given up. `tries` counts all tries, `round` those of
the schedule that goes on: a redelivery begins it anew."""

webhook_delivery = Table(
    "webhook_delivery",
    METADATA,
    Column("request_id", Uuid, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("number", SmallInteger, nullable=False),
    Column("try", SmallInteger, nullable=False),
    instant("at", default_now=True),
    Column("status", SmallInteger),
    Column("took_ms", Integer, nullable=False),
    Column("error", Text, nullable=False),
    PrimaryKeyConstraint("request_id", "kind", "number", "try"),
)
"""One row a try. `status` is what the receiver answered, null where it did not; `error` is empty for a success."""

webhook_secret = Table(
    "webhook_secret",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("account_id", BigInteger, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    instant("created_at", default_now=True),
    instant_or_null("expires_at"),
    Index("webhook_secret_account_id_idx", "account_id", unique=True, postgresql_where=text("expires_at is null")),
)
"""What signs an account's webhooks: one that is current, and those before it until they expire. Signing needs the
secret itself, so it stands here as it is."""
