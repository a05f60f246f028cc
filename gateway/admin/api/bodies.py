"""What the admin API takes and answers. Amounts are integers in nanos; unknown fields are refused by name."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gateway.ledger.records import Account, AccountKind, Correction, Key, Refund

PRINTABLE = r"^(?![\s\S]*[\x00-\x1f\x7f])"
"""No control characters: names and reasons are printed in terminals, tables and logs."""

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=PRINTABLE)]
Label = Annotated[str, Meta(max_length=200, pattern=PRINTABLE)]
Entry = Annotated[str, Meta(min_length=1, max_length=200, pattern=PRINTABLE)]
Reason = Annotated[str, Meta(max_length=1000, pattern=PRINTABLE)]
Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Nanos = Annotated[int, Meta(ge=0, le=2**63 - 1)]
SignedNanos = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Instant = Annotated[datetime, Meta(tz=True)]


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all bodies share."""


class CreateAccount(_Body, frozen=True):
    """A new account; its balance is booked as a top-up."""

    name: Name
    kind: AccountKind = "prepaid"
    balance_nanos: Nanos = 0
    credit_limit_nanos: Nanos = 0


class TopUp(_Body, frozen=True):
    """Money that came in. A repeated `transaction_id` is booked once."""

    amount_nanos: Nanos
    reason: Reason = ""
    transaction_id: UUID | None = None


class Adjust(_Body, frozen=True):
    """A correction of a balance, up or down."""

    amount_nanos: SignedNanos
    reason: Reason
    transaction_id: UUID | None = None


class CreditLimit(_Body, frozen=True):
    """How far a postpaid account may go below zero."""

    credit_limit_nanos: Nanos


class CorrectionLine(_Body, frozen=True):
    """One side of a correction: `account:12`, `revenue` or `outside`; plus is what it gets, minus what it gives."""

    side: Annotated[str, Meta(max_length=40, pattern=PRINTABLE)]
    amount_nanos: SignedNanos


class Correct(_Body, frozen=True):
    """A correction of the ledger: two lines that sum to zero. A repeated `transaction_id` is booked once."""

    lines: Annotated[list[CorrectionLine], Meta(min_length=2, max_length=2)]
    reason: Annotated[str, Meta(min_length=1, max_length=1000, pattern=PRINTABLE)]
    transaction_id: UUID | None = None


class Retention(_Body, frozen=True):
    """For how long outputs and media of an account are kept; null is the system's own time."""

    keep_media_s: Annotated[int, Meta(ge=1, le=2**40)] | None


class CreateKey(_Body, frozen=True):
    """A new API key."""

    account_id: Id
    name: Label = ""
    budget_nanos: Nanos | None = None
    expires_at: Instant | None = None
    models: list[Entry] | None = None
    addresses: list[Entry] | None = None


class EditKey(_Body, frozen=True, omit_defaults=True):
    """What of an API key is to be another; what is not given stays as it is."""

    name: Label | UnsetType = UNSET
    budget_nanos: Nanos | UnsetType | None = UNSET
    expires_at: Instant | UnsetType | None = UNSET
    models: list[Entry] | UnsetType | None = UNSET
    addresses: list[Entry] | UnsetType | None = UNSET


class AlertUrl(_Body, frozen=True):
    """Where an account is told of budgets that run out; null is nowhere."""

    alert_url: Annotated[str, Meta(max_length=2000)] | None


class Budget(_Body, frozen=True):
    """What a key may spend in all; null lifts the limit."""

    budget_nanos: Nanos | None


class GiveRefund(_Body, frozen=True):
    """What of a request's charge is given back; null is all that is left of it. A `transaction_id` counts once."""

    reason: Reason
    amount_nanos: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    transaction_id: UUID | None = None


class AccountList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of accounts; `next_after` is the `after` of the next page, null on the last."""

    accounts: list[Account]
    next_after: int | None


class KeyList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of keys; `next_after` is the `after` of the next page, null on the last."""

    keys: list[Key]
    next_after: int | None


class RefundList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of refunds; `next_after` is the `after` of the next page, null on the last."""

    refunds: list[Refund]
    next_after: str | None


class CorrectionList(msgspec.Struct, frozen=True, kw_only=True):
    """Corrections and adjustments, the latest first."""

    corrections: list[Correction]
