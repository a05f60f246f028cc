"""Two operators who change one price at once: the second is told what both changed."""

import msgspec

from gateway.catalog.diff import FieldChange, outcome_changes, price_changes
from gateway.catalog.model import Sold
from gateway.errors import Conflict
from gateway.ledger.prices.records import Draft, PriceRecord


class PriceConflict(Conflict):
    """Another version came between what an author looked at and what they publish."""

    default_code = "price_changed_meanwhile"
    retryable = False

    def __init__(self, last: PriceRecord | None, base: PriceRecord | None, draft: Draft) -> None:
        self.last = last
        sold = base.sold if base else Sold()
        theirs = price_changes(sold, last.sold if last else Sold())
        yours = price_changes(sold, draft.sold)
        if base is not None and last is not None:
            theirs += outcome_changes(base.outcome, last.outcome)
        if base is not None and draft.outcome is not None:
            yours += outcome_changes(base.outcome, draft.outcome)
        self.theirs: tuple[FieldChange, ...] = theirs
        """What has changed since the author looked."""
        self.yours: tuple[FieldChange, ...] = yours
        """What the author changes."""
        if last is None:
            who = "The version that you looked at was cancelled"
        else:
            who = f"Version {last.id} came first, by {last.author or 'somebody'} through {last.door}"
        super().__init__(
            f"{who} ({_said(self.theirs)}); yours changes {_said(self.yours)}. Look again, and publish from there.",
            param="base",
        )
        self.details = {
            "version": last.id if last else None,
            "theirs": msgspec.to_builtins(list(self.theirs)),
            "yours": msgspec.to_builtins(list(self.yours)),
        }


def _said(changes: tuple[FieldChange, ...]) -> str:
    return "; ".join(change.text() for change in changes) or "nothing"
