"""Limits of accounts and keys as they are told and asked for: plain data, which commands import without a database."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

OwnerKind = Literal["account", "key"]
Period = Literal["day", "week", "month", "total"]
RateKind = Literal["requests", "tokens", "concurrent"]

MOST_RATE = 1_000_000_000
"""The highest limit of requests, tokens or places."""

MostNanos = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Most = Annotated[int, Meta(ge=1, le=MOST_RATE)]


class RateLimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What may be asked for in a minute, or be open at once."""

    most: Most
    """Requests or tokens in any 60 seconds, or requests that are open at once."""
    burst: Most | None = None
    """The most of it in two seconds in a row; None is no such limit. Not of places."""


class LimitChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits to be set; null lifts one, and what is not named stays as it is."""

    budgets: dict[Period, MostNanos | None] = {}
    rates: dict[RateKind, RateLimit | None] = {}


class BudgetState(msgspec.Struct, frozen=True, kw_only=True):
    """How a budget stands."""

    limit_nanos: int
    used_nanos: int
    """Holds of open requests and charges of finished ones that were admitted in the period."""
    left_nanos: int
    since: datetime | None
    """When the period began; None for a budget in all."""
    resets_at: datetime | None


class RateState(msgspec.Struct, frozen=True, kw_only=True):
    """How a rate or the places stand."""

    most: int
    burst: int | None
    used: int
    """In the last 60 seconds, or now."""
    left: int


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """All limits of an account or a key, as they stand."""

    owner: OwnerKind
    id: int
    budgets: dict[Period, BudgetState]
    rates: dict[RateKind, RateState]
