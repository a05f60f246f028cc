"""What an import reads of one model."""

from decimal import Decimal

import msgspec

from gateway.catalog.prices import component
from gateway.contract.tasks import Task
from gateway.pricing.price import PriceComponent, PricedUnit

LEAST_PRICE = "finer than a trillionth of a dollar, below zero, or too large"


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a price map, ready to be written."""

    name: str
    wire: str
    """Its name at the upstream."""
    task: Task
    context_tokens: int = 0
    max_output_tokens: int = 0
    price: tuple[PriceComponent, ...] = ()
    """Empty where nothing of it could be said: such a model is not for sale."""
    unsaid: tuple[str, ...] = ()
    """Figures that may count for a call and that no price row can say, each with its amount."""
    elsewhere: tuple[str, ...] = ()
    """Figures of services that are not asked for here, such as batches: they change no charge."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a price map that cannot be an entry, and why."""

    name: str
    why: str


class Money:
    """Collects the price rows of one model, each unit once, and what they cannot say."""

    def __init__(self) -> None:
        self.rows: dict[PricedUnit, PriceComponent] = {}
        self.unsaid: list[str] = []
        self.elsewhere: list[str] = []
        self.broken = False

    def add(self, key: str, amount: Decimal, unit: PricedUnit, each: int = 1) -> None:
        """Add a row of `amount` for one of what `key` counts, of which `each` are one `unit`."""
        try:
            row = component(plain(amount * each), unit, 1)
        except ValueError:
            self.unsaid.append(f"{key} {plain(amount)}: {LEAST_PRICE}")
            self.broken = True
            return
        known = self.rows.setdefault(unit, row)
        if known != row:
            self.unsaid.append(f"{key} {plain(amount)}: a second price per {unit.replace('_', ' ')}")

    def price(self, exact: bool) -> tuple[PriceComponent, ...]:
        """Give the rows: none where one could not be read, or where all are zero beside something that costs.

        If `exact`, none where anything is left unsaid.
        """
        free = not any(row.picos for row in self.rows.values())
        wrong = self.broken or (self.unsaid and (exact or free))
        return () if wrong else tuple(self.rows.values())


def plain(amount: Decimal) -> str:
    """Write a decimal without an exponent where that is short, else as it was read."""
    return format(amount, "f") if -40 < amount.adjusted() < 40 else str(amount)
