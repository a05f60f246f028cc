"""Where money went: double entry, append-only."""

from typing import Literal, get_args

from sqlalchemy import BigInteger, Column, Index, SmallInteger, Table, Text, Uuid, text

from gateway.db.metadata import METADATA, instant

REVENUE = 0
"""The ledger's own account that charges flow into."""

OUTSIDE = -1
"""The ledger's own account for money outside: top-ups come from here."""

LedgerKind = Literal["charge", "top_up", "refund", "adjustment"]
"""Why money moved. Stored as its position in `LEDGER_KINDS`, so the order never changes."""

LEDGER_KINDS: tuple[LedgerKind, ...] = get_args(LedgerKind)

ledger_entry = Table(
    "ledger_entry",
    METADATA,
    instant("at", default_now=True),
    Column("transaction_id", Uuid, nullable=False),
    Column("account_id", BigInteger, nullable=False),
    Column("amount_nanos", BigInteger, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("reason", Text),
    Index("ledger_entry_account_id_at_idx", "account_id", "at", postgresql_where=text("kind <> 0")),
    Index("ledger_entry_at_idx", "at", postgresql_using="brin"),
)
"""Every transaction sums to zero. A charge has the id of its request, minus on the account, plus on `REVENUE`;
a top-up has a plus on the account and a minus on `OUTSIDE`. A trigger refuses update and delete.
Charges stay out of the index: they are found by their usage row, which was written at the same instant."""
