"""The ways of a request: by order, by weight, and by what is known of the pools."""

import random
from collections import Counter

import pytest

from gateway.catalog.model import Model, Pool, Route, Snapshot
from gateway.contract.pools import LoadState, ModelState, UpstreamState, WorkerStatus
from gateway.errors import Unavailable
from gateway.routing.choice import Routes
from gateway.routing.health import LEAST_SEEN, OPEN_S, Health

POOLS = ("a", "b", "c", "up")


def routes(*given: Route, pools: tuple[str, ...] = POOLS, health: Health | None = None) -> tuple[Routes, Model]:
    model = Model(name="m", tasks=("chat",), description="", routes=given)
    there = {name: Pool(name=name, engine="upstream" if name == "up" else "fake") for name in pools}
    snapshot = Snapshot(revision=1, models={"m": model}, pools=there, prices={}, model_names={})
    return Routes(lambda: snapshot, random.Random(7), health=health), model


def worker(
    pool: str, state: LoadState = "ready", *, draining: bool = False, **upstreams: UpstreamState
) -> WorkerStatus:
    return WorkerStatus(
        worker="w",
        pool=pool,
        engine="fake",
        pid=1,
        version="",
        models={"m": ModelState(state=state)},
        capacity=1,
        running=0,
        memory_bytes=0,
        draining=draining,
        upstreams=upstreams,
    )


def ways(choice: Routes, model: Model) -> list[str]:
    return [lane.pool.name for lane in choice.ways(model)]


def test_routes_come_in_their_order() -> None:
    choice, model = routes(Route(pool="b", order=1), Route(pool="a"), Route(pool="c", order=2))
    assert all(ways(choice, model) == ["a", "b", "c"] for _ in range(20))


def test_a_route_whose_pool_is_gone_is_passed_over() -> None:
    choice, model = routes(Route(pool="a"), Route(pool="b", order=1), pools=("b",))
    assert ways(choice, model) == ["b"]


def test_weight_shares_the_requests_among_equals() -> None:
    choice, model = routes(Route(pool="a", weight=3), Route(pool="b", weight=1))
    seen = Counter(ways(choice, model)[0] for _ in range(4000))
    assert 0.7 < seen["a"] / 4000 < 0.8


def test_no_route_is_said_and_never_a_crash() -> None:
    choice, model = routes(Route(pool="a"), pools=())
    with pytest.raises(Unavailable, match="No route"):
        choice.ways(model)


def test_upstreams_of_one_pool_are_one_way() -> None:
    choice, model = routes(
        Route(pool="up", upstream="gmi", model="x"),
        Route(pool="a", order=1),
        Route(pool="up", upstream="fal", model="y", order=2),
    )
    lanes = choice.ways(model)
    assert [(lane.pool.name, lane.upstreams) for lane in lanes] == [("up", ("gmi", "fal")), ("a", ())]


@pytest.mark.parametrize("away", [[], [worker("a", draining=True)], [worker("a", "loading")], [worker("a", "failed")]])
def test_a_pool_that_serves_nothing_now_is_left_out_where_another_does(away: list[WorkerStatus]) -> None:
    choice, model = routes(Route(pool="a"), Route(pool="b", order=1))
    choice.outlook.sampled("a", away)
    choice.outlook.sampled("b", [worker("b")])
    assert ways(choice, model) == ["b"]
    choice.outlook.sampled("a", [worker("a")])
    assert ways(choice, model) == ["a", "b"]


def test_a_pool_without_workers_is_waited_for_where_there_is_no_other() -> None:
    choice, model = routes(Route(pool="a"), Route(pool="b", order=1))
    choice.outlook.sampled("a", [])
    choice.outlook.sampled("b", [])
    lanes = choice.ways(model)
    assert [(lane.pool.name, lane.stand) for lane in lanes] == [("a", "idle"), ("b", "idle")]


def test_an_upstream_without_a_key_is_left_out_and_named_where_there_is_no_other_way() -> None:
    upstream = Route(pool="up", upstream="eleven-labs", model="x")
    choice, model = routes(upstream, Route(pool="b", order=1))
    choice.outlook.sampled("up", [worker("up", "unset")])
    assert ways(choice, model) == ["b"]
    alone, model = routes(upstream)
    alone.outlook.sampled("up", [worker("up", "unset")])
    with pytest.raises(Unavailable, match="FAREGATE_UPSTREAM_ELEVEN_LABS_KEY") as caught:
        alone.ways(model)
    assert caught.value.code == "upstream_not_configured"


def test_an_upstream_whose_breaker_is_open_comes_last_until_it_may_be_tried() -> None:
    choice, model = routes(Route(pool="up", upstream="gmi", model="x"), Route(pool="b", order=1))
    choice.outlook.sampled("b", [worker("b")])
    choice.outlook.sampled("up", [worker("up", gmi=UpstreamState(state="open"))])
    assert ways(choice, model) == ["b", "up"]
    choice.outlook.sampled("up", [worker("up", gmi=UpstreamState(state="half_open"))])
    assert ways(choice, model) == ["up", "b"]


def test_a_pool_that_fails_comes_last_and_one_trial_decides() -> None:
    now_s = 100.0
    health = Health(lambda: now_s)
    choice, model = routes(Route(pool="a"), Route(pool="b", order=1), health=health)
    for _ in range(LEAST_SEEN - 1):
        health.ended("m", "a", "engine_error")
    assert ways(choice, model) == ["a", "b"]
    health.ended("m", "a", "engine_lost")
    assert ways(choice, model) == ["b", "a"]
    now_s += OPEN_S + 0.1
    assert [ways(choice, model)[0] for _ in range(3)] == ["a", "b", "b"]  # one trial, and no herd
    health.ended("m", "a", "engine_error")
    now_s += OPEN_S + 0.1
    assert ways(choice, model)[0] == "b"  # for twice as long
    now_s += OPEN_S
    assert ways(choice, model)[0] == "a"
    health.ended("m", "a", "done")
    assert [ways(choice, model)[0] for _ in range(3)] == ["a", "a", "a"]


@pytest.mark.parametrize("reason", ["refused_by_engine", "blocked", "client_gone", "deadline", "done"])
def test_what_a_caller_did_speaks_against_no_pool(reason: str) -> None:
    health = Health()
    health.ended("m", "a", "engine_error")
    for _ in range(50):
        health.ended("m", "a", reason)  # type: ignore[arg-type]
    assert not health.tripped
