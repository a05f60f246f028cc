"""What an ended request is charged and what it cost, under the terms of its admission."""

from datetime import UTC, datetime

import pytest

from gateway.catalog.model import Model, Pool, Route, Snapshot
from gateway.contract.events import Ended, Step
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.flow.reckon import reckoned
from gateway.money import parse_price, parse_usd
from gateway.pricing.conditions import Condition
from gateway.pricing.price import PriceComponent, PriceVersion
from gateway.pricing.rate import WHOLE_HOLD
from gateway.pricing.terms import Terms, terms_json

HD = Condition("quality", values=("hd",))
DEAR = PriceComponent("image", parse_price("0.08"), (HD,))
CHEAP = PriceComponent("image", parse_price("0.02"))
START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR_US = 3_600_000_000


def snapshot(*versions: PriceVersion, cost_usd_per_hour: str | None = None) -> Snapshot:
    hourly = None if cost_usd_per_hour is None else parse_price(cost_usd_per_hour)
    route = Route(pool="cloud", upstream="acme", model="acme/draw", cost=(DEAR, CHEAP))
    model = Model(name="m", id=1, tasks=("text-to-image",), description="", routes=(route,), price=versions[0])
    return Snapshot(
        revision=1,
        models={"m": model},
        pools={
            "here": Pool(name="here", engine="fake", cost_picos_per_hour=hourly),
            "cloud": Pool(name="cloud", engine="upstream"),
        },
        prices={each.id: each for each in versions},
        model_names={1: "m"},
    )


def ended(price: int, steps: tuple[Step, ...] = (), gpu_us: int = 0) -> Ended:
    return Ended("req_1", 1, "succeeded", "done", Units(images=2), Phases(), price, steps=list(steps), gpu_us=gpu_us)


def test_each_way_is_charged_by_its_own_models_traits() -> None:
    """A fallback has its own defaults: what stands in the terms of its version counts, and the one discount."""
    first = PriceVersion(1, 1, (DEAR, CHEAP), START)
    second = PriceVersion(2, 2, (DEAR, CHEAP), START)
    terms = terms_json(Terms(traits={"quality": "hd"}, discount_ppm=500_000, others={2: {"quality": "low"}}))
    known = snapshot(first, second)
    assert reckoned(known, ended(1), "here", 1, terms).charge_nanos == parse_usd("0.08")
    assert reckoned(known, ended(2), "here", 2, terms).charge_nanos == parse_usd("0.02")


def test_what_no_row_covers_is_never_free() -> None:
    known = snapshot(PriceVersion(1, 1, (DEAR,), START))
    assert reckoned(known, ended(1), "here", 1, None).charge_nanos == WHOLE_HOLD


@pytest.mark.parametrize(
    ("hourly", "gpu_us", "usd"),
    [("2", HOUR_US, "2"), ("2.49", HOUR_US // 2, "1.245"), ("2", 1, "0.000000001"), ("0", HOUR_US, "0")],
)
def test_time_on_a_worker_costs_its_share_of_an_hour_exactly(hourly: str, gpu_us: int, usd: str) -> None:
    known = snapshot(PriceVersion(1, 1, (CHEAP,), START), cost_usd_per_hour=hourly)
    assert reckoned(known, ended(1, gpu_us=gpu_us), "here", 1).cost_nanos == parse_usd(usd)


def test_an_upstreams_cost_looks_at_the_same_traits() -> None:
    known = snapshot(PriceVersion(1, 1, (CHEAP,), START))
    call = Step(
        "acme", "acme/draw", "job", "cloud", "w", 1, "succeeded", "done", Units(images=2), Phases(), upstream=True
    )
    terms = terms_json(Terms(traits={"quality": "hd"}))
    assert reckoned(known, ended(1, (call,)), "cloud", 1, terms).cost_nanos == parse_usd("0.16")
    assert reckoned(known, ended(1, (call,)), "cloud", 1, None).cost_nanos == parse_usd("0.04")
