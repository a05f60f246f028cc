"""Who pays, and what callers present."""

from typing import Literal, get_args

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Identity, Index, LargeBinary, Table, Text, text

from gateway.db.metadata import METADATA, instant, instant_or_null, nanos

AccountKind = Literal["prepaid", "postpaid"]
"""A prepaid account spends what was topped up; a postpaid one goes below zero, down to its credit limit."""

ACCOUNT_KINDS: tuple[AccountKind, ...] = get_args(AccountKind)

MOST_NANOS = 4 * 10**18
"""The most that is topped up or lent, four billion dollars, so that balance and limit add up within a bigint."""

account = Table(
    "account",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False, server_default=text("'prepaid'")),
    nanos("credit_limit_nanos"),
    nanos("topped_up_nanos"),
    nanos("available_nanos"),
    nanos("held_nanos"),
    nanos("spent_nanos"),
    instant_or_null("suspended_at"),
    instant("created_at", default_now=True),
    CheckConstraint("available_nanos >= -credit_limit_nanos", name="available_check"),
    CheckConstraint(
        "topped_up_nanos = available_nanos + held_nanos + spent_nanos and held_nanos >= 0 and spent_nanos >= 0",
        name="books_check",
    ),
    postgresql_with={"fillfactor": 20},
)
"""Ids begin at 1: 0 and -1 are the ledger's own accounts. Only what guards money is a CHECK: each costs every statement
that writes here 3 to 5 us. Kind, name, limit and top-ups are checked by who writes them."""

api_key = Table(
    "api_key",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("account_id", BigInteger, ForeignKey("account.id"), nullable=False),
    Column("name", Text, nullable=False, server_default=text("''")),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("prefix", Text, nullable=False),
    Column("budget_nanos", BigInteger),
    nanos("used_nanos"),
    instant_or_null("expires_at"),
    instant_or_null("revoked_at"),
    instant("created_at", default_now=True),
    instant_or_null("last_used_at"),
    Column("revision", BigInteger, nullable=False, server_default=text("0")),
    Index("api_key_account_id_idx", "account_id"),
    Index("api_key_revision_idx", "revision"),
    postgresql_with={"fillfactor": 20},
)
"""`hash` is the SHA-256 of the whole key. `used_nanos` counts holds of open requests and charges of finished ones.
`revision` is what `revision.keys` was raised to when the key or its account last changed."""
