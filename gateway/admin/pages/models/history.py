"""The history of a price: a strip from past to scheduled, and beside each version what it changed, by whom and how."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.admin.pages.models.differences import Difference, differences
from gateway.admin.pages.models.listing import price_words
from gateway.admin.site.view import View
from gateway.catalog.model import Sold
from gateway.errors import InvalidRequest
from gateway.ledger.prices.records import PriceRecord
from gateway.pricing.policy import OutcomePolicy

PAGE = 20
STRIP = 8
"""How many versions the strip shows: those that are nearest to now."""
TONES = {"in_force": "good", "scheduled": "info", "cancelled": "warn", "past": "off"}
DOORS = {"file": "file", "dashboard": "dashboard", "api": "API or command"}
COLUMNS = (
    *("version", "state", "valid_from", "until", "door", "author", "made_at", "reason", "price", "differences"),
    *("cancelled_at", "cancelled_by", "cancelled_for"),
)


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A version with what it changed, against the one that stood before it."""

    record: PriceRecord
    changed: Sequence[Difference]

    @property
    def price(self) -> str:
        """What it says, in words."""
        return price_words(self.record) or ("the list price" if self.record.price_list else "not for sale")

    @property
    def state(self) -> str:
        """Its state, in words."""
        return self.record.state.replace("_", " ")

    @property
    def tone(self) -> str:
        """The colour of its state."""
        return TONES[self.record.state]

    @property
    def door(self) -> str:
        """The way it came in."""
        return DOORS.get(self.record.door, self.record.door)


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A page of it, and the strip."""

    strip: Sequence[Version]
    """Past first, scheduled last; what was called off is not in it."""
    earlier: int
    """How many versions lie before the strip."""
    rows: Sequence[Version]
    counted: int
    next_after: int | None


def history_of(view: View, records: Sequence[PriceRecord]) -> History:
    """Give the page of the history that the address asks for."""
    versions = told(records)
    after = view.query.get("after", "")
    if after and not (after.isascii() and after.isdigit() and len(after) < 10):
        raise InvalidRequest("'after' is the number of a version.", param="after")
    begin = next((at + 1 for at, one in enumerate(versions) if after and one.record.id == int(after)), 0)
    rows = versions[begin : begin + PAGE]
    standing = [one for one in reversed(versions) if one.record.cancelled is None]
    scheduled = len([one for one in standing if one.record.state == "scheduled"])
    first = max(len(standing) - max(STRIP, scheduled + 1), 0)
    return History(
        strip=standing[first:],
        earlier=first,
        rows=rows,
        counted=len(versions),
        next_after=rows[-1].record.id if begin + PAGE < len(versions) else None,
    )


def told(records: Sequence[PriceRecord]) -> list[Version]:
    """Say what each version changed, the latest first; one that was called off changed nothing for those after it."""
    versions: list[Version] = []
    sold, policy = Sold(), None
    for each in reversed(records):
        before: tuple[Sold, OutcomePolicy | None] = (sold, policy)
        versions.append(Version(record=each, changed=differences(before, (each.sold, each.outcome))))
        if each.cancelled is None:
            sold, policy = each.sold, each.outcome
    versions.reverse()
    return versions


def cells(records: Sequence[PriceRecord]) -> list[list[Any]]:
    """Write all of it for a table."""
    return [_cells(one) for one in told(records)]


def _cells(one: Version) -> list[Any]:
    record, off = one.record, one.record.cancelled
    return [
        *(record.id, record.state, record.valid_from.isoformat(), record.until.isoformat() if record.until else None),
        *(record.door, record.author or record.source, record.created_at.isoformat(), record.reason),
        *(one.price, "; ".join(each.text() for each in one.changed)),
        *((off.at.isoformat(), off.author, off.reason) if off else (None, None, None)),
    ]
