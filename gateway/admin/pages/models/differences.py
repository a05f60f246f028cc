"""What changes from one price to another, as pages show it: the words of a field, before and after."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

import msgspec

from gateway.admin.site.figures import NOTHING, change
from gateway.catalog.diff import FieldChange, outcome_changes, price_changes
from gateway.catalog.model import Sold
from gateway.pricing.policy import ChargeWhen, OutcomePolicy

CHARGED: dict[ChargeWhen, str] = {
    "nothing": "nothing",
    "produced": "what was made",
    "full": "all that was held",
}
OUTCOMES = {"failed": "If it fails", "cancelled": "If it is cancelled", "expired": "If its time runs out"}
"""The outcomes that a policy speaks of, in words."""
ATTOS = 10**18


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One field, as macros/changes.html shows it."""

    field: str
    before: str
    after: str
    note: str = ""
    """By how much an amount changes."""

    def text(self) -> str:
        """Write it as a sentence."""
        note = f" ({self.note})" if self.note else ""
        before = f"{self.before} → " if self.before != NOTHING else ""
        return f"{self.field}: {before}{self.after}{note}"


def differences(old: tuple[Sold, OutcomePolicy | None], new: tuple[Sold, OutcomePolicy]) -> list[Difference]:
    """Compare two prices, and what requests cost that do not succeed; there may be no policy before."""
    policy = outcome_changes(old[1], new[1]) if old[1] is not None else ()
    return shown((*price_changes(old[0], new[0]), *policy))


def shown(changes: Iterable[FieldChange]) -> list[Difference]:
    """Put changes into words."""
    return [_shown(each) for each in changes]


def _shown(one: FieldChange) -> Difference:
    kind, _, name = one.field.partition(".")
    if kind == "outcome" and name in OUTCOMES:
        return Difference(field=OUTCOMES[name], before=CHARGED[one.old], after=CHARGED[one.new])
    note = ""
    if one.old is not None and one.new is not None and isinstance(one.new, str):
        note = change(_attos(one.new), _attos(one.old))
    after = _words(one.new) if one.new is not None else "none"
    return Difference(field=one.field, before=_words(one.old), after=after, note=note)


def _attos(dollars: str) -> int:
    return int(Decimal(dollars.removeprefix("$")) * ATTOS)


def _words(value: str | Sequence[str] | None) -> str:
    if value is None:
        return NOTHING
    return value if isinstance(value, str) else ", ".join(words or "always" for words in value)
