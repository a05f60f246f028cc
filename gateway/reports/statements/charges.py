"""What was charged, by model and price version: units times price, and what is left of rounding."""

from collections.abc import Iterable

import msgspec

from gateway.contract.units import UNIT_NAMES, Units
from gateway.money import ATTOS_PER_NANO, attos_text, decimal_text, price_text
from gateway.pricing.lines import PLACES
from gateway.pricing.price import PriceComponent, PriceVersion
from gateway.pricing.rate import line_attos, quantities
from gateway.pricing.rows import NotSold
from gateway.pricing.terms import WHOLE_PPM, read_terms
from gateway.reports.statements.records import Charge, UnitLine


class Sold(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the requests of one model, one price version and the same terms."""

    model: str
    price_version: int
    terms: str | None
    requests: int
    free: int
    rated: int
    """Requests of which the price of a request itself was charged."""
    units: Units
    """Of the requests that were charged."""
    charge_nanos: int


class _Tally:
    """The lines of one model and version, as they are added up."""

    def __init__(self, model: str, version: int) -> None:
        self.model = model
        self.version = version
        self.requests = self.free = self.charge_nanos = self.attos = self.discount = 0
        self.counted: dict[PriceComponent, int] = {}

    def add(self, sold: Sold, price: PriceVersion | None) -> None:
        self.requests += sold.requests
        self.free += sold.free
        self.charge_nanos += sold.charge_nanos
        if price is None or sold.requests == sold.free:
            return
        terms = read_terms(sold.terms)
        try:
            counted = quantities(price, sold.units, sold.rated, terms.traits_at(price.id))
        except NotSold:
            return
        attos = 0
        for component, quantity in counted:
            self.counted[component] = self.counted.get(component, 0) + quantity
            attos += line_attos(component, quantity)
        self.attos += attos
        self.discount += attos * terms.discount_ppm

    def charge(self) -> Charge:
        lines = [_line(component, quantity) for component, quantity in self.counted.items() if quantity]
        millionths = (self.charge_nanos * ATTOS_PER_NANO - self.attos) * WHOLE_PPM + self.discount
        if self.discount:
            lines.append(_rest("discount", -self.discount))
        if millionths:
            lines.append(_rest("rounding", millionths))
        return Charge(
            model=self.model,
            price_version=self.version,
            requests=self.requests,
            free=self.free,
            amount_nanos=self.charge_nanos,
            lines=tuple(lines),
        )


def charges_of(sold: Iterable[Sold], prices: dict[int, PriceVersion]) -> tuple[Charge, ...]:
    """Add up what was sold: a charge for each model and price version, the largest first."""
    tallies: dict[tuple[str, int], _Tally] = {}
    for each in sold:
        key = (each.model, each.price_version)
        tallies.setdefault(key, _Tally(*key)).add(each, prices.get(each.price_version))
    charges = [tally.charge() for tally in tallies.values()]
    return tuple(sorted(charges, key=lambda each: (-each.amount_nanos, each.model, each.price_version)))


def _line(component: PriceComponent, quantity: int) -> UnitLine:
    places = PLACES.get(component.unit)
    return UnitLine(
        unit=component.unit,
        quantity=str(quantity) if places is None else decimal_text(quantity, places),
        price_usd=price_text(component.picos),
        amount_usd=attos_text(line_attos(component, quantity)),
        when=component.words,
    )


def _rest(unit: str, millionths: int) -> UnitLine:
    """Write a line that is no price: an amount in millionths of attos."""
    return UnitLine(unit=unit, quantity="", price_usd="", amount_usd=decimal_text(millionths, 24))


def units_of(row: object) -> Units:
    """Read the sums of units from a row."""
    return Units(*(int(row[name]) for name in UNIT_NAMES))  # type: ignore[index]  # a record of asyncpg
