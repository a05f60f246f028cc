"""I3 by its hardest meaning: every usage row rated again, at the price version pinned to it."""

from importlib.resources import files

import asyncpg

from gateway.catalog.codec import read_components, read_outcome
from gateway.contract.states import OUTCOMES, Outcome
from gateway.contract.units import UNIT_NAMES, Units
from gateway.ledger.books.figures import MOST_OFFENDERS, Check
from gateway.ledger.books.statements import SNAPSHOT_TIMEOUT_S
from gateway.ledger.books.window import ALL_TIME, Window
from gateway.pricing.price import PriceVersion
from gateway.pricing.rate import charge_nanos
from gateway.pricing.rows import NotSold
from gateway.pricing.terms import read_terms

ROWS_AT_ONCE = 500
"""Rated between two turns of the event loop, in some 5 ms: whatever else the process does goes on beside."""

_SQL = files("gateway.ledger.books") / "sql"


class Rated:
    """What rating has found so far."""

    def __init__(self) -> None:
        self.charged = 0
        self.rated = 0
        self.broken = 0
        self.offenders: list[str] = []

    def add(self, row: asyncpg.Record, prices: dict[int, PriceVersion]) -> None:
        """Rate the requests that one row stands for."""
        count: int = row["requests"]
        charge: int = row["charge_nanos"]
        price = prices.get(row["price_version_id"])
        expected = expected_charge(row, price) if price else -1
        self.charged += count * charge
        self.rated += count * max(expected, 0)
        if charge != expected:
            self.broken += count
            self.offenders.append(row["example"])


def expected_charge(row: asyncpg.Record, price: PriceVersion) -> int:
    """Rate a row as settlement should have: by the policy, and at most its hold; -1 where no row covers it."""
    outcome: Outcome = OUTCOMES[row["outcome"]]
    terms = read_terms(row["terms"])
    try:
        charge = charge_nanos(price, _units(row), outcome, price.outcome, row["forward_began"], terms)
    except NotSold:
        return -1
    return min(charge, int(row["hold_nanos"]))


def _units(row: asyncpg.Record) -> Units:
    return Units(*(row[name] for name in UNIT_NAMES))


async def read_prices(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[int, PriceVersion]:
    """Read every price version that a row may have pinned."""
    prices = {}
    for row in await connection.fetch((_SQL / "prices.sql").read_text("utf-8")):
        components = read_components(row["components"])
        outcome = read_outcome(row["outcome"])
        prices[row["id"]] = PriceVersion(
            row["id"], row["model_id"], components, row["valid_from"], outcome, row["minimum_nanos"]
        )
    return prices


async def check_rating(connection: "asyncpg.Connection[asyncpg.Record]", window: Window = ALL_TIME) -> Check:
    """Rate the usage rows of the snapshot again that ended in the window."""
    prices = await read_prices(connection)
    found = Rated()
    statement = (_SQL / "i03_rated.sql").read_text("utf-8")
    async for row in connection.cursor(statement, *window.bounds, prefetch=ROWS_AT_ONCE, timeout=SNAPSHOT_TIMEOUT_S):
        found.add(row, prices)
    return Check(
        invariant="I3",
        statement="Each charge is the measured units at the pinned price version, capped at the hold.",
        left_name="usage charges",
        left=found.charged,
        right_name="rated again",
        right=found.rated,
        difference=found.charged - found.rated,
        verdict="broken" if found.broken else "holds",
        broken=found.broken,
        offenders=tuple(found.offenders[:MOST_OFFENDERS]),
    )
