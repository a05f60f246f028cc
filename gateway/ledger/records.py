"""Accounts and keys as they are told: plain data, for commands to import without a database library."""

from datetime import datetime
from typing import Literal

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


class Issued(Key, frozen=True, kw_only=True):
    """A new key with all of its characters, the only time that they are shown."""

    key: str
