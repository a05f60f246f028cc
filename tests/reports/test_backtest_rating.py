"""A price written as SQL is the price that requests are charged by: each row to the nano, for any price."""

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.contract.ids import new_request_id, uuid_of
from gateway.contract.phases import Phases
from gateway.contract.states import OUTCOMES
from gateway.contract.units import UNIT_NAMES, Units
from gateway.money import MAX_NANOS
from gateway.pricing.conditions import Condition
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PRICED_UNITS, PriceComponent, PriceVersion
from gateway.pricing.rate import WHOLE_HOLD, charge_nanos
from gateway.pricing.rows import NotSold
from gateway.pricing.terms import Terms, terms_json
from gateway.reports.backtest.statement import Rule, Rules, chunk_statement

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MODEL, PINNED = 7, 11
KEYS = range(1, 241)
EVER = (UUID(int=0), UUID(int=2**128 - 1), NOW - timedelta(days=1), NOW + timedelta(days=1))


class Row(msgspec.Struct, frozen=True):
    """A usage row as Python sees it; its key is its own."""

    key: int
    units: Units
    outcome: int
    forward_began: bool
    hold: int
    charge: int
    terms: Terms


def made_rows() -> list[Row]:
    """Make rows of all kinds: small, huge, empty, with and without traits and discounts."""
    draw = random.Random(20_260_601)
    rows = []
    for key in KEYS:
        top = draw.choice([3, 900, 40_000, 10**9])
        units = Units(*(draw.choice([0, draw.randrange(top)]) for _ in UNIT_NAMES))
        traits: dict[str, Any] = {}
        if draw.random() < 0.7:
            traits["size"] = draw.choice(["720p", "1080p", "4k", "it's"])
        if draw.random() < 0.7:
            traits["seconds"] = draw.choice([1, 5, 7.5, 10, 0.1, 30])
        if draw.random() < 0.4:
            traits["sound"] = draw.choice([True, False])
        others = {PINNED: {"size": "4k", "seconds": 5}} if draw.random() < 0.2 else {}
        terms = Terms(traits=traits, discount_ppm=draw.choice([0, 0, 1, 100_000, 333_333, 1_000_000]), others=others)
        hold = draw.choice([0, 1_000, 10**9, 10**15])
        rows.append(Row(key, units, draw.randrange(4), draw.random() < 0.5, hold, draw.randrange(hold + 1), terms))
    return rows


ROWS = made_rows()


class Past:
    """A connection to a database with those rows, and the loop that it lives in."""

    def __init__(self, database_url: str) -> None:
        self.runner = asyncio.Runner()
        self.connection = self.runner.run(self._fill(database_url))

    async def _fill(self, database_url: str) -> "asyncpg.Connection[asyncpg.Record]":
        connection = await asyncpg.connect(database_url)
        columns = [
            *("id", "account_id", "api_key_id", "created_at", "finished_at", "hold_nanos", "charge_nanos"),
            *UNIT_NAMES,
            *Phases.__struct_fields__,
            *("model_id", "price_version_id", "task", "outcome", "reason", "attempt", "forward_began", "pool"),
            *("worker", "cost_nanos", "terms"),
        ]
        records = [
            (
                *(uuid_of(new_request_id()), 1, row.key, NOW, NOW, row.hold, row.charge),
                *(getattr(row.units, name) for name in UNIT_NAMES),
                *(0 for _ in Phases.__struct_fields__),
                *(MODEL, PINNED, 0, row.outcome, 0, 1, row.forward_began, "fake", "w", 5, terms_json(row.terms)),
            )
            for row in ROWS
        ]
        await connection.copy_records_to_table("usage", records=records, columns=columns)
        return connection

    def rate(self, rules: Rules) -> dict[int, asyncpg.Record]:
        """Rate all rows; answers by key, which is by row."""
        text, arguments = chunk_statement("model_id", rules, "account_id <> all($6::bigint[])")
        asked = self.connection.fetch(text, MODEL, *EVER, [], *arguments)
        return {row["api_key_id"]: row for row in self.runner.run(self._wait(asked))}

    async def _wait(self, asked: Any) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await asked
        return rows

    def close(self) -> None:
        """Close the connection and its loop."""
        self.runner.run(self.connection.close())
        self.runner.close()


@pytest.fixture(scope="module")
def past(module_database_url: str) -> Iterator[Past]:
    made = Past(module_database_url)
    yield made
    made.close()


CONDITIONS = st.one_of(
    st.builds(
        Condition,
        st.just("size"),
        values=st.lists(st.sampled_from(["720p", "1080p", "4k", "it's"]), min_size=1, max_size=2).map(tuple),
    ),
    st.builds(
        Condition,
        st.just("seconds"),
        least=st.sampled_from([None, 1, 5, 0.1, 7.5]),
        below=st.sampled_from([None, 5, 10, 30.5]),
    ),
    st.builds(Condition, st.just("seconds"), values=st.sampled_from([(5,), (7.5, 10), (1.0,)])),
    st.builds(Condition, st.just("sound"), values=st.sampled_from([(True,), (False,)])),
)


def reachable(rows: list[PriceComponent]) -> tuple[PriceComponent, ...]:
    """Leave out rows behind one of the same unit that always counts: no catalog takes them."""
    kept: list[PriceComponent] = []
    for row in rows:
        if not any(other.unit == row.unit and not other.when for other in kept):
            kept.append(row)
    return tuple(kept)


COMPONENTS = st.lists(
    st.builds(
        PriceComponent,
        st.sampled_from(PRICED_UNITS),
        st.one_of(st.integers(0, 5_000), st.integers(0, 10**13)),
        st.one_of(st.just(()), st.lists(CONDITIONS, max_size=2).map(tuple)),
    ),
    min_size=1,
    max_size=8,
).map(reachable)
WHENS = st.sampled_from(["nothing", "produced", "full"])
POLICIES = st.builds(OutcomePolicy, failed=WHENS, cancelled=WHENS, expired=WHENS)
RULES = st.builds(Rule, components=COMPONENTS, minimum_nanos=st.sampled_from([0, 0, 1, 777, 10**9]), outcome=POLICIES)


def expected(rule: Rule, row: Row, terms: Terms) -> int | None:
    """Charge a row as settlement does, before it is capped; None where it is not sold."""
    price = PriceVersion(PINNED, MODEL, rule.components, NOW, rule.outcome, rule.minimum_nanos)
    try:
        return charge_nanos(price, row.units, OUTCOMES[row.outcome], rule.outcome, row.forward_began, terms)
    except NotSold:
        return None


def check(found: asyncpg.Record, row: Row, charge: int | None) -> None:
    """Hold the sums of one row against what Python charges for it."""
    if charge is None:
        assert (found["unrated"] + found["unsold"], found["after_nanos"], found["before_nanos"]) == (1, 0, 0), row
        assert found["unrated_nanos"] + found["unsold_nanos"] == row.charge
        return
    whole = charge == WHOLE_HOLD == MAX_NANOS
    assert found["unrated"] == found["unsold"] == 0, row
    assert found["after_nanos"] == min(charge, row.hold), row
    assert found["before_nanos"] == row.charge
    over = 0 if whole else max(min(charge, MAX_NANOS) - row.hold, 0)
    assert (found["capped"], found["capped_nanos"]) == (int(over > 0), over), row
    assert (found["cost_nanos"], found["uncosted"]) == (5, 0)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rule=RULES)
def test_every_row_under_any_draft_costs_what_the_gateway_would_charge(past: Past, rule: Rule) -> None:
    # the pinned version looked at all traits, so that a trait that is not there was left out by its caller
    knows = Rule(
        components=(
            PriceComponent(
                "request", 1, tuple(Condition(name, values=("x",)) for name in ("size", "seconds", "sound"))
            ),
        )
    )
    found = past.rate(Rules(draft=rule, pinned={PINNED: knows}))
    assert len(found) == len(ROWS)
    for row in ROWS:
        check(found[row.key], row, expected(rule, row, row.terms))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rule=RULES, ppm=st.sampled_from([0, 1, 50_000, 333_333, 999_999, 1_000_000]))
def test_every_row_under_another_discount_costs_its_own_price_less_that(past: Past, rule: Rule, ppm: int) -> None:
    found = past.rate(Rules(pinned={3: Rule(components=()), PINNED: rule}, discount_ppm=ppm))
    for row in ROWS:
        check(found[row.key], row, expected(rule, row, msgspec.structs.replace(row.terms, discount_ppm=ppm)))


def test_a_row_that_does_not_say_what_a_condition_looks_at_is_said_not_to_be_rated(past: Past) -> None:
    dear = PriceComponent("request", 10**12, (Condition("size", values=("4k",)),))
    rule = Rule(components=(dear, PriceComponent("request", 10**11)))
    found = past.rate(Rules(draft=rule, pinned={PINNED: Rule(components=())}))
    for row in ROWS:
        rated = rule.outcome.failed != "nothing" or OUTCOMES[row.outcome] != "failed"
        silent = "size" not in row.terms.traits_at(PINNED) and rated
        assert found[row.key]["unrated"] == int(silent), row
        assert found[row.key]["unrated_nanos"] == (row.charge if silent else 0)
        assert found[row.key]["unsold"] == 0


def test_a_draft_with_nothing_in_it_sells_nothing(past: Past) -> None:
    found = past.rate(Rules(draft=Rule(components=())))
    assert sum(row["unsold"] for row in found.values()) == sum(OUTCOMES[row.outcome] != "failed" for row in ROWS)
    assert sum(row["after_nanos"] for row in found.values()) == 0
