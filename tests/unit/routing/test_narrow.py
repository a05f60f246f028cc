"""What a caller's wishes leave of a model's ways."""

from collections import Counter

import pytest

from gateway.catalog.model import Route
from gateway.contract.pools import UpstreamState
from gateway.errors import InvalidRequest
from gateway.routing.narrow import Narrowing
from tests.unit.routing.test_choice import routes, worker

GMI = Route(pool="up", upstream="gmi", model="x", weight=3)
FAL = Route(pool="up", upstream="fal", model="y")
LATE = Route(pool="up", upstream="late", model="z", order=2)
OWN = Route(pool="a", order=1)


def told(narrowing: Narrowing, *given: Route) -> list[tuple[str, tuple[str, ...]]]:
    choice, model = routes(*(given or (GMI, FAL, LATE, OWN)))
    return [(lane.pool.name, lane.only) for lane in choice.ways(model, narrowing)]


@pytest.mark.parametrize(
    ("narrowing", "left"),
    [
        (Narrowing(), [("up", ()), ("a", ())]),
        (Narrowing(order=("a",)), [("a", ()), ("up", ())]),
        (Narrowing(order=("fal", "a")), [("up", ("fal", "gmi", "late")), ("a", ())]),
        (Narrowing(only=frozenset({"fal", "late"})), [("up", ("fal", "late"))]),
        (Narrowing(only=frozenset({"up"})), [("up", ())]),
        (Narrowing(ignore=frozenset({"gmi"})), [("up", ("fal", "late")), ("a", ())]),
        (Narrowing(ignore=frozenset({"up"})), [("a", ())]),
        (Narrowing(order=("a",), single=True), [("a", ())]),
        (Narrowing(order=("late",), single=True), [("up", ("late",))]),
    ],
)
def test_wishes_order_and_narrow_the_ways(narrowing: Narrowing, left: list[tuple[str, tuple[str, ...]]]) -> None:
    assert told(narrowing) == left


def test_wishes_that_leave_nothing_are_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        told(Narrowing(only=frozenset({"b"})))
    assert caught.value.code == "no_way_left"


def test_one_way_means_one_upstream_of_the_lowest_order_by_weight() -> None:
    choice, model = routes(GMI, FAL, LATE)
    seen = Counter(choice.ways(model, Narrowing(single=True))[0].only for _ in range(2000))
    assert seen.keys() == {("gmi",), ("fal",)}
    assert 0.7 < seen[("gmi",)] / 2000 < 0.8


def test_one_way_is_none_that_cannot_be_called() -> None:
    choice, model = routes(GMI, FAL)
    away, there = UpstreamState(state="open"), UpstreamState(state="closed")
    choice.outlook.sampled("up", [worker("up", gmi=away, fal=there)])
    assert {choice.ways(model, Narrowing(single=True))[0].only for _ in range(50)} == {("fal",)}


def test_the_fastest_upstream_comes_first_where_that_is_asked() -> None:
    choice, model = routes(GMI, FAL)
    slow, fast = (UpstreamState(state="closed", latency_ms=ms) for ms in (900, 90))
    choice.outlook.sampled("up", [worker("up", gmi=slow, fal=fast)])
    assert choice.ways(model, Narrowing(sort="latency"))[0].only == ("fal", "gmi")
