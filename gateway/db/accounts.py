"""Who pays, and what callers present."""

from typing import Literal, get_args

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

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
    Column("keep_media_s", BigInteger),
    Column("price_list_id", BigInteger, ForeignKey("price_list.id")),
    Column("discount_ppm", Integer, nullable=False, server_default=text("0")),
    Column("limited", Boolean, nullable=False, server_default=text("false")),
    Column("alert_url", Text),
    CheckConstraint("available_nanos >= -credit_limit_nanos", name="available_check"),
    CheckConstraint(
        "topped_up_nanos = available_nanos + held_nanos + spent_nanos and held_nanos >= 0 and spent_nanos >= 0",
        name="books_check",
    ),
    postgresql_with={"fillfactor": 20},
)
"""Ids begin at 1: 0 and -1 are the ledger's own accounts. Only what guards money is a CHECK: each costs every
statement that writes here 3 to 5 us. Kind, name, limit and top-ups are checked by who writes them. `limited` says
whether the account has rows in the tables of limits, so that admission need not look. `discount_ppm` is millionths
off every charge."""

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
    Column("limited", Boolean, nullable=False, server_default=text("false")),
    Column("models", ARRAY(Text)),
    Column("addresses", ARRAY(Text)),
    Column("budget_alerted", SmallInteger, nullable=False, server_default=text("0")),
    Index("api_key_account_id_idx", "account_id"),
    Index("api_key_revision_idx", "revision"),
    Index("api_key_budget_idx", "id", postgresql_where=text("budget_nanos is not null")),
    postgresql_with={"fillfactor": 20},
)
"""`hash` is the SHA-256 of the whole key. `used_nanos` counts holds of open requests and charges of finished ones.
`revision` is what `revision.keys` was raised to when the key or its account last changed. `limited` as for accounts.
`models` and `addresses` (networks in CIDR form) are what it may call and from where; null is any.
`budget_alerted` is the highest share of its budget, in percent, that was told."""
