"""What a caller's wishes leave of a model's ways, and in which order."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from gateway.catalog.model import Model
from gateway.routing.lanes import Lane

MOST_ORDER = 1_000


class Narrowing(msgspec.Struct, frozen=True, kw_only=True):
    """Wishes about ways. Names are those of pools and upstreams, and known."""

    order: tuple[str, ...] = ()
    only: frozenset[str] = frozenset()
    """Empty where all may."""
    ignore: frozenset[str] = frozenset()
    single: bool = False
    """Whether there is to be one way, and within it one upstream."""
    sort: Literal["price", "latency", "throughput"] | None = None


def narrow(narrowing: Narrowing, lanes: Sequence[Lane], latency_ms: Callable[[Lane, str], float]) -> list[Lane]:
    """Give the lanes that are left, each with the upstreams that are left, the wanted ones first.

    `latency_ms` tells how long an upstream of a lane takes, or the lane itself for the empty name; infinity where
    nobody knows.
    """
    left: list[Lane] = []
    for lane in lanes:
        pool = lane.pool.name
        if not lane.upstreams:
            if _allowed(narrowing, pool):
                left.append(msgspec.structs.replace(lane, order=_rank(narrowing, lane, (pool,), latency_ms)))
            continue
        names = [name for name in lane.upstreams if _allowed(narrowing, pool, name)]
        if not names:
            continue
        if narrowing.sort in ("latency", "throughput"):
            names.sort(key=lambda name: latency_ms(lane, name))
        names.sort(key=lambda name: _place(narrowing, name))
        same = tuple(names) == lane.upstreams
        order = _rank(narrowing, lane, (pool, *names), latency_ms)
        left.append(
            msgspec.structs.replace(lane, order=order, upstreams=tuple(names), only=() if same else tuple(names))
        )
    return sorted(left, key=lambda lane: lane.order)


def one_upstream(
    model: Model, lane: Lane, narrowing: Narrowing, serves: Callable[[str, str], bool], draw: Callable[[], float]
) -> Lane:
    """Leave one upstream of a lane, of those that serve: the one wanted first, else of the lowest order by weight."""
    if len(lane.upstreams) < 2:
        return lane
    names = [name for name in lane.upstreams if serves(lane.pool.name, name)] or list(lane.upstreams)
    chosen = names[0]
    if not narrowing.order and narrowing.sort in (None, "price"):
        routes = [route for route in model.routes if route.pool == lane.pool.name and route.upstream in names]
        lowest = min(route.order for route in routes)
        drawn = [route for route in routes if route.order == lowest]
        chosen = max(drawn, key=lambda route: draw() ** (1 / route.weight)).upstream
    return msgspec.structs.replace(lane, upstreams=(chosen,), only=(chosen,))


def _allowed(narrowing: Narrowing, *names: str) -> bool:
    if narrowing.only and not narrowing.only.intersection(names):
        return False
    return not narrowing.ignore.intersection(names)


def _place(narrowing: Narrowing, name: str) -> int:
    return narrowing.order.index(name) if name in narrowing.order else len(narrowing.order)


def _rank(narrowing: Narrowing, lane: Lane, names: Sequence[str], latency_ms: Callable[[Lane, str], float]) -> int:
    """Give the order of a lane under the wishes: what is named first, then what is fast where that is asked."""
    place = min(_place(narrowing, name) for name in names)
    if narrowing.sort in ("latency", "throughput"):
        fast = min(latency_ms(lane, name) for name in ("", *lane.upstreams))
        return place * 10**12 + int(min(fast, 10**11))
    return place * MOST_ORDER + lane.order
