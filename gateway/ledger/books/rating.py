"""I3 by its hardest meaning: every usage row rated again, at the price version pinned to it."""

from importlib.resources import files

import asyncpg
import msgspec

from gateway.catalog.codec import read_components
from gateway.contract.states import OUTCOMES, Outcome
from gateway.contract.units import UNIT_NAMES, Units
from gateway.ledger.books.figures import MOST_OFFENDERS, Check
from gateway.ledger.books.statements import SNAPSHOT_TIMEOUT_S
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceVersion
from gateway.pricing.rate import charge_nanos, rate_nanos

ROWS_AT_ONCE = 2_000

_SQL = files("gateway.ledger.books") / "sql"


class Priced(msgspec.Struct, frozen=True):
    """A price version with what other outcomes than success cost."""

    version: PriceVersion
    policy: OutcomePolicy


class Rated:
    """What rating has found so far."""

    def __init__(self) -> None:
        self.charged = 0
        self.rated = 0
        self.broken = 0
        self.earlier_policy = 0
        self.offenders: list[str] = []

    def add(self, row: asyncpg.Record, prices: dict[int, Priced]) -> None:
        """Rate the requests that one row stands for."""
        count: int = row["requests"]
        charge: int = row["charge_nanos"]
        priced = prices.get(row["price_version_id"])
        expected = expected_charge(row, priced) if priced else -1
        self.charged += count * charge
        if charge != expected and priced and charge in _other_charges(row, priced):
            self.earlier_policy += count
            expected = charge
        self.rated += count * max(expected, 0)
        if charge != expected:
            self.broken += count
            self.offenders.append(row["example"])


def expected_charge(row: asyncpg.Record, priced: Priced) -> int:
    """Rate a row as settlement should have: by the policy, and at most its hold."""
    outcome: Outcome = OUTCOMES[row["outcome"]]
    charge = charge_nanos(priced.version, _units(row), outcome, priced.policy, row["forward_began"])
    return min(charge, int(row["hold_nanos"]))


def _other_charges(row: asyncpg.Record, priced: Priced) -> set[int]:
    """Give what a request that did not succeed may have cost under another policy: policies change, rows do not."""
    if OUTCOMES[row["outcome"]] == "succeeded":
        return set()
    hold = int(row["hold_nanos"])
    produced = rate_nanos(priced.version, _units(row), requests=1 if row["forward_began"] else 0)
    return {0, min(produced, hold), hold}


def _units(row: asyncpg.Record) -> Units:
    return Units(*(row[name] for name in UNIT_NAMES))


async def read_prices(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[int, Priced]:
    """Read every price version that a row may have pinned."""
    prices = {}
    for row in await connection.fetch((_SQL / "prices.sql").read_text("utf-8")):
        components = read_components(row["components"])
        policy = msgspec.convert(row["outcome"] or {}, OutcomePolicy)
        prices[row["id"]] = Priced(PriceVersion(row["id"], row["model_id"], components, row["valid_from"]), policy)
    return prices


async def check_rating(connection: "asyncpg.Connection[asyncpg.Record]") -> Check:
    """Rate all usage rows of the snapshot again."""
    prices = await read_prices(connection)
    found = Rated()
    statement = (_SQL / "i03_rated.sql").read_text("utf-8")
    async for row in connection.cursor(statement, prefetch=ROWS_AT_ONCE, timeout=SNAPSHOT_TIMEOUT_S):
        found.add(row, prices)
    note = f"{found.earlier_policy} by an earlier outcome policy of their model" if found.earlier_policy else ""
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
        note=note,
    )
