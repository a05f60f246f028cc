"""Accounts and keys as they are told: plain data, for commands to import without a database library."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

AccountKind = Literal["prepaid", "postpaid"]
"""A prepaid account spends what was topped up; a postpaid one goes below zero, down to its credit limit."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An account as it stands."""

    id: int
    name: str
    kind: AccountKind
    credit_limit_nanos: int
    topped_up_nanos: int
    available_nanos: int
    held_nanos: int
    spent_nanos: int
    suspended_at: datetime | None
    created_at: datetime
    keep_media_s: int | None
    """For how long its media are kept; None is the system's own time."""
    price_list_id: int | None
    """Whose prices it pays; None is the list price."""
    discount_ppm: int
    """Millionths off every charge."""
    alert_url: str | None
    """Where it wants to be told of budgets that run out."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """An API key as it stands, without what would let anyone use it."""

    id: int
    account_id: int
    name: str
    prefix: str
    budget_nanos: int | None
    used_nanos: int
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    last_used_at: datetime | None
    models: list[str] | None
    """What it may call; None is every model."""
    addresses: list[str] | None
    """From where, as networks; None is anywhere."""


class Issued(Key, frozen=True, kw_only=True):
    """A new key with all of its characters, the only time that they are shown."""

    key: str


class Refund(msgspec.Struct, frozen=True, kw_only=True):
    """What of a request's charge was given back."""

    id: UUID
    """Also that of its ledger transaction."""
    at: datetime
    request_id: str
    account_id: int
    api_key_id: int
    amount_nanos: int
    actor: str
    reason: str


class RequestRefunds(msgspec.Struct, frozen=True, kw_only=True):
    """A finished request's charge, and what of it was given back."""

    request_id: str
    account_id: int
    api_key_id: int
    charge_nanos: int
    refunded_nanos: int
    refunds: list[Refund]

    @property
    def left_nanos(self) -> int:
        """What can still be given back."""
        return self.charge_nanos - self.refunded_nanos


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a correction: plus is what it gets, minus what it gives."""

    side: str
    """`account:12`, `revenue` or `outside`."""
    amount_nanos: int


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """A correction that stands in the ledger."""

    id: UUID
    at: datetime
    lines: tuple[Line, ...]
    reason: str
