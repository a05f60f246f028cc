"""A full queue refuses before any hold, and says when to come back."""

import random
from collections import Counter

import pytest

from gateway.catalog.model import Model, Pool, Route, Snapshot
from gateway.errors import TooManyRequests, Unavailable
from gateway.routing.backlog import RETRY_AFTER_MOST_S, Backlog
from gateway.routing.choice import Routes

POOL = Pool(name="p", engine="fake", backlog=10)


def test_a_full_queue_is_refused_with_a_time_to_come_back() -> None:
    backlog = Backlog()
    backlog.enqueued("p", 9)
    backlog.admit(POOL)
    backlog.enqueued("p", 10)
    with pytest.raises(TooManyRequests) as caught:
        backlog.admit(POOL)
    assert caught.value.code == "queue_full"
    assert caught.value.retry_after_s is not None
    assert 0 < caught.value.retry_after_s <= RETRY_AFTER_MOST_S


def test_a_sample_that_shows_room_opens_the_queue_again() -> None:
    backlog = Backlog()
    backlog.enqueued("p", 10)
    backlog.sampled("p", 3)
    backlog.admit(POOL)


def test_an_estimate_needs_a_history() -> None:
    backlog = Backlog()
    assert backlog.wait_s("p", 5) is None


def routes(*given: Route, pools: tuple[str, ...]) -> tuple[Routes, Model]:
    model = Model(name="m", tasks=("chat",), description="", routes=given)
    there = {name: Pool(name=name, engine="fake") for name in pools}
    snapshot = Snapshot(revision=1, models={"m": model}, pools=there, prices={}, model_names={})
    return Routes(lambda: snapshot, random.Random(7)), model


def test_the_lowest_order_comes_first() -> None:
    choice, model = routes(Route(pool="b", order=1), Route(pool="a", order=0), pools=("a", "b"))
    assert {choice.choose(model).name for _ in range(20)} == {"a"}


def test_a_route_whose_pool_is_gone_is_passed_over() -> None:
    choice, model = routes(Route(pool="a", order=0), Route(pool="b", order=1), pools=("b",))
    assert choice.choose(model).name == "b"


def test_weight_shares_the_requests_among_equals() -> None:
    choice, model = routes(Route(pool="a", weight=3), Route(pool="b", weight=1), pools=("a", "b"))
    seen = Counter(choice.choose(model).name for _ in range(4000))
    assert 0.7 < seen["a"] / 4000 < 0.8


def test_no_route_is_said_and_never_a_crash() -> None:
    choice, model = routes(Route(pool="a"), pools=())
    with pytest.raises(Unavailable, match="No route"):
        choice.choose(model)
