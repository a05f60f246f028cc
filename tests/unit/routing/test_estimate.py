"""How fast pools serve, and what that says of those who wait."""

import math
import random
from statistics import quantiles

import pytest

from gateway.contract.events import Ended
from gateway.contract.history import PoolHistory, ServiceTimes
from gateway.contract.phases import Phases
from gateway.contract.states import Outcome
from gateway.contract.units import Units
from gateway.routing.estimate import Estimates, estimate
from gateway.routing.outlook import Outlook
from gateway.routing.pace import HALF_LIFE_ENDS, Paces, ServiceHistogram
from tests.unit.routing.test_choice import worker


def times(mean_ms: float, deviation_ms: float = 0.0) -> ServiceTimes:
    return ServiceTimes(100, mean_ms, deviation_ms, mean_ms, mean_ms + 1.28 * deviation_ms, 1.0)


def end(ms: int, outcome: Outcome = "succeeded", tokens: int = 0, worker: str = "w") -> Ended:
    phases = Phases(queue_us=9_000_000, forward_us=ms * 1000)
    return Ended("req_1", 1, outcome, "done", Units(output_tokens=tokens), phases, 1, worker)


def simulated(draw: random.Random, places: int, mean_s: float, cv: float, departures: int) -> float:
    """Run busy places from some moment amid their work, and give when the d-th departure comes."""
    shape = 1 / (cv * cv)
    free_at = [0.0] * places
    warm = [[draw.gammavariate(shape, mean_s / shape) for _ in range(60)] for _ in range(places)]
    asked = 30 * mean_s
    seen: list[float] = []
    for place, services in enumerate(warm):
        for service in services:
            free_at[place] += service
            seen.append(free_at[place])
    return sorted(at - asked for at in seen if at > asked)[departures - 1]


@pytest.mark.parametrize(("places", "cv", "departures"), [(1, 0.1, 5), (1, 0.9, 8), (4, 0.3, 12), (4, 1.0, 20)])
def test_the_formula_agrees_with_a_simulation(places: int, cv: float, departures: int) -> None:
    draw = random.Random(places)
    seen = [simulated(draw, places, 1.0, cv, departures) for _ in range(2000)]
    cuts = quantiles(seen, n=10)
    told = estimate(times(1000, cv * 1000), times(1000), places, departures).start
    assert told.p50 == pytest.approx(cuts[4], rel=0.12)
    assert told.p90 == pytest.approx(cuts[8], rel=0.15)


def test_a_free_place_is_taken_at_once() -> None:
    told = estimate(times(1000, 300), times(2000, 400), 4, 0)
    assert (told.start.p50, told.start.p90) == (0, 0)
    assert told.finish.p50 == 2.0
    assert told.finish.p90 == pytest.approx(2.512)


def test_an_estimate_needs_history_and_a_live_worker() -> None:
    estimates = Estimates(Outlook())
    assert estimates.eta("a", "m", 3) is None
    estimates.sampled({"a": PoolHistory(times(1000), {})})
    assert estimates.eta("a", "m", 3) is None
    estimates.outlook.sampled("a", [worker("a")])
    told = estimates.eta("a", "m", 3, leased=1)
    assert told is not None
    assert told.finish.p50 == pytest.approx(4.5)


def test_a_histogram_gives_mean_and_quantiles() -> None:
    histogram = ServiceHistogram()
    for ms in range(1, 1001):
        histogram.add(ms, 1)
    told = histogram.told()
    assert told is not None
    assert told.mean_ms == pytest.approx(500.5)
    assert told.deviation_ms == pytest.approx(math.sqrt((1000**2 - 1) / 12), rel=0.01)
    assert told.p50_ms == pytest.approx(500, rel=0.1)
    assert told.p90_ms == pytest.approx(900, rel=0.1)


def test_old_ends_fade_as_new_ones_come_and_stay_where_none_come() -> None:
    paces = Paces()
    for _ in range(50):
        paces.ended("a", "m", end(100))
    before = paces.histories()["a"].all
    assert paces.histories() == {}  # nothing new, nothing told, nothing lost
    for _ in range(5 * HALF_LIFE_ENDS):
        paces.ended("a", "m", end(1000))
        paces.histories()
    assert before.mean_ms == pytest.approx(100)
    paces.ended("a", "m", end(1000))
    told = paces.histories()["a"].all
    assert told.mean_ms > 950
    assert told.ends < 2 * HALF_LIFE_ENDS


def test_a_model_counts_its_successes_and_the_pool_all_that_took_a_place() -> None:
    paces = Paces()
    paces.ended("a", "m", end(1000, tokens=50))
    paces.ended("a", "m", end(10, "failed"))
    paces.ended("a", "", end(100))
    paces.ended("a", "m", end(0, "expired", worker=""))
    told = paces.histories()["a"]
    assert told.all.ends == 3
    assert told.models["m"].ends == 1
    assert told.models["m"].units_per_s == pytest.approx(50)
