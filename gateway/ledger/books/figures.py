"""What a check of the books says, and the report of all."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

Verdict = Literal["holds", "broken", "not drained"]
"""`not drained`: the statement is about a drained system, and requests are still open."""

MOST_OFFENDERS = 10


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One statement with its two figures. Amounts are in nanos."""

    invariant: str
    """`I1` to `I13`."""
    statement: str
    left_name: str
    left: int
    right_name: str
    right: int
    difference: int
    verdict: Verdict
    broken: int = 0
    """How many rows contradict the statement."""
    offenders: tuple[str, ...] = ()
    """The first ten of them."""
    note: str = ""


def together(parts: Sequence[Check]) -> Check:
    """Add up one statement's checks of several windows."""
    broken = sum(part.broken for part in parts)
    return msgspec.structs.replace(
        parts[-1],
        left=sum(part.left for part in parts),
        right=sum(part.right for part in parts),
        difference=sum(part.difference for part in parts),
        verdict="broken" if broken else "holds",
        broken=broken,
        offenders=tuple(offender for part in parts for offender in part.offenders)[:MOST_OFFENDERS],
    )


class BooksReport(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one snapshot."""

    checked_at: datetime
    open_requests: int
    usage_rows: int
    holds: bool
    """Whether nothing is broken."""
    rows_since: datetime | None = None
    """Row by row it went from here on; None is from the first row. Sums are always of everything."""
    checks: tuple[Check, ...]
