"""What accounts and keys may spend in a period, and ask for in a minute or at once; and who was told of it."""

from typing import Literal, get_args

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from gateway.db.metadata import METADATA, instant, instant_or_null, nanos

OwnerKind = Literal["account", "key"]
"""Whose limit it is. Stored as its position in `OWNER_KINDS`."""

OWNER_KINDS: tuple[OwnerKind, ...] = get_args(OwnerKind)

Period = Literal["day", "week", "month", "total"]
"""Of UTC; a week begins on Monday."""

PERIODS: tuple[Period, ...] = get_args(Period)

RateKind = Literal["requests", "tokens", "concurrent"]
"""Requests or tokens a minute, or requests at once."""

RATE_KINDS: tuple[RateKind, ...] = get_args(RateKind)

RING_SECONDS = 61
"""The seconds that a rate counts one by one: a window of 60 s touches no more."""

_LONG_AGO = text("'-infinity'")
_NO_COUNTS = text(f"array_fill(0::bigint, ARRAY[{RING_SECONDS}])")

spending_limit = Table(
    "spending_limit",
    METADATA,
    Column("owner_id", BigInteger, nullable=False),
    Column("limit_nanos", BigInteger, nullable=False),
    nanos("used_nanos"),
    Column("since", DateTime(timezone=True), nullable=False, server_default=_LONG_AGO),
    Column("owner_kind", SmallInteger, nullable=False),
    Column("alerted", SmallInteger, nullable=False, server_default=text("0")),
    Column("period", Text, nullable=False),
    PrimaryKeyConstraint("owner_kind", "owner_id", "period"),
    postgresql_with={"fillfactor": 20},
)
"""`used_nanos` counts holds of open requests and charges of finished ones that were admitted from `since` on, the
begin of a period. `alerted` is the highest share, in percent, that was told in it."""

rate_limit = Table(
    "rate_limit",
    METADATA,
    Column("owner_id", BigInteger, nullable=False),
    Column("most", BigInteger, nullable=False),
    Column("burst", BigInteger),
    nanos("used"),
    Column("second", BigInteger, nullable=False, server_default=text("0")),
    Column("owner_kind", SmallInteger, nullable=False),
    Column("what", Text, nullable=False),
    Column("counts", ARRAY(BigInteger), nullable=False, server_default=_NO_COUNTS),
    PrimaryKeyConstraint("owner_kind", "owner_id", "what"),
    postgresql_with={"fillfactor": 20},
)
"""Of a rate, `counts` is a ring of the last 61 seconds up to `second` (of Unix time; second s has the place
s % 61 + 1), and `used` its sum; of `concurrent`, `used` are the open requests. `burst` is the most of two seconds
in a row; null is no such limit."""

limit_alert = Table(
    "limit_alert",
    METADATA,
    Column("id", Uuid, primary_key=True),
    instant("at", default_now=True),
    instant_or_null("since"),
    instant("due_at", default_now=True),
    instant_or_null("delivered_at"),
    Column("account_id", BigInteger, nullable=False),
    Column("owner_id", BigInteger, nullable=False),
    Column("used_nanos", BigInteger, nullable=False),
    Column("limit_nanos", BigInteger, nullable=False),
    Column("owner_kind", SmallInteger, nullable=False),
    Column("percent", SmallInteger, nullable=False),
    Column("tries", SmallInteger, nullable=False, server_default=text("0")),
    Column("period", Text, nullable=False),
    Column("url", Text),
    Column("given_up", Boolean, nullable=False, server_default=text("false")),
    Index(
        "limit_alert_due_at_idx",
        "due_at",
        postgresql_where=text("url is not null and delivered_at is null and not given_up"),
    ),
    Index("limit_alert_account_id_at_idx", "account_id", "at"),
)
"""Budgets of which 50, 80 or 100% were used, and whether the account's `alert_url` was told."""
