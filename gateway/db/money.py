"""Refunds, payments that came in by webhook, and the results of checking the books."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from gateway.db.metadata import METADATA, instant, instant_or_null

refund = Table(
    "refund",
    METADATA,
    Column("id", Uuid, primary_key=True),
    instant("at", default_now=True),
    Column("request_id", Uuid, nullable=False),
    Column("account_id", BigInteger, nullable=False),
    Column("api_key_id", BigInteger, nullable=False),
    Column("amount_nanos", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("refund_request_id_idx", "request_id"),
    Index("refund_account_id_at_idx", "account_id", "at"),
    Index("refund_at_idx", "at"),
)
"""What of a request's charge was given back: in all at most the charge. Its id is that of its ledger transaction.
Append-only."""

payment_event = Table(
    "payment_event",
    METADATA,
    Column("provider", Text, nullable=False),
    Column("event_id", Text, nullable=False),
    instant("at", default_now=True),
    Column("account_id", BigInteger),
    Column("amount_nanos", BigInteger),
    Column("transaction_id", Uuid),
    Column("outcome", Text, nullable=False),
    Column("detail", Text, nullable=False, server_default=text("''")),
    PrimaryKeyConstraint("provider", "event_id"),
    Index("payment_event_at_idx", "at"),
    Index("payment_event_transaction_id_idx", "transaction_id", unique=True),
)
"""Events of payment providers, each once. `outcome`: booked, ignored, refused, or attention where
money went back and an operator decides. `transaction_id` is that of the top-up that this event booked.""" ""

books_run = Table(
    "books_run",
    METADATA,
    Column("id", Uuid, primary_key=True),
    instant("at", default_now=True),
    Column("took_ms", BigInteger, nullable=False),
    Column("green", Boolean, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("report", JSONB, nullable=False),
    instant_or_null("alert_due_at"),
    Column("alert_tries", SmallInteger, nullable=False, server_default=text("0")),
    Index("books_run_at_idx", "at"),
    Index("books_run_alert_due_at_idx", "alert_due_at", postgresql_where=text("alert_due_at is not null")),
)
"""Results of checking I1 to I13. `trigger`: schedule, dashboard, api or command; `complete`: whether all rows were gone
through. `alert_due_at` is set where green turned red, or back, until that is told or given up."""

books_job = Table(
    "books_job",
    METADATA,
    Column("id", Uuid, primary_key=True),
    instant("asked_at", default_now=True),
    instant_or_null("started_at"),
    instant_or_null("beat_at"),
    instant_or_null("finished_at"),
    Column("run_id", Uuid),
    Column("steps_done", Integer, nullable=False, server_default=text("0")),
    Column("steps_in_all", Integer, nullable=False, server_default=text("0")),
    Column("trigger", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("error", Text, nullable=False, server_default=text("''")),
    Index("books_job_asked_at_idx", "asked_at"),
)
"""Verifications that somebody asked for, which a settler does; `beat_at` is when it last said how far it is."""
