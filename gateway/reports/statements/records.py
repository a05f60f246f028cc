"""A statement and its parts."""

from datetime import date, datetime
from hashlib import sha256
from typing import Literal

import msgspec

BookingKind = Literal["top_up", "refund", "correction"]


class Booking(msgspec.Struct, frozen=True, kw_only=True):
    """A top-up, a refund or a correction."""

    at: datetime
    kind: BookingKind
    amount_nanos: int
    """With its sign on the account."""
    reason: str
    request_id: str = ""
    """Of a refund, which request's charge was given back."""


class UnitLine(msgspec.Struct, frozen=True, kw_only=True):
    """Units at their price, over all requests of a model and a price version."""

    unit: str
    """A priced unit; `discount`; or `rounding`, what minimums, caps at the hold and rounding add up to."""
    quantity: str
    price_usd: str
    amount_usd: str
    """Exact: the lines of a charge sum to it."""
    when: str = ""
    """In words, the conditions of the row."""


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """What was charged for a model at one price version."""

    model: str
    price_version: int
    requests: int
    """All that finished, also those that were not charged."""
    free: int
    """How many of them were charged nothing, as failed ones are by default."""
    amount_nanos: int
    lines: tuple[UnitLine, ...]


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """A day of the statement."""

    day: date
    requests: int = 0
    top_up_nanos: int = 0
    charge_nanos: int = 0
    refund_nanos: int = 0
    correction_nanos: int = 0
    closing_nanos: int = 0


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A month of an account: opening + top-ups - charges + refunds + corrections = closing.

    Or of one of its keys: then the same of what that key spent and got back, and both balances are that with a minus.
    """

    account_id: int
    account: str
    key_id: int | None = None
    """Whose alone it is; None is the whole account's."""
    key: str = ""
    month: str
    zone_name: str
    from_at: datetime
    to_at: datetime
    made_at: datetime
    provisional: bool
    """Whether the month may still change: it is not over, or its last hour is not closed."""
    opening_nanos: int
    top_up_nanos: int
    charge_nanos: int
    refund_nanos: int
    correction_nanos: int
    closing_nanos: int
    charges: tuple[Charge, ...]
    bookings: tuple[Booking, ...]
    days: tuple[Day, ...]

    @property
    def checksum(self) -> str:
        """The SHA-256 over all but when it was made: of a closed month it never changes."""
        plain = msgspec.to_builtins(self)
        del plain["made_at"]
        return sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()
