"""The lanes of a model: its routes gathered by pool, in tiers by order and by how they stand."""

from collections.abc import Callable, Sequence

import msgspec

from gateway.catalog.model import Model, Pool, Route
from gateway.contract.pools import upstream_setting
from gateway.errors import FaregateError, InvalidRequest, Unavailable
from gateway.routing.outlook import Outlook, Stand


class Lane(msgspec.Struct, frozen=True):
    """The routes of one model that lie in one pool: one way, since its workers try their targets in turn."""

    pool: Pool
    order: int
    weight: int
    upstreams: tuple[str, ...] = ()
    """The upstreams that may serve it there, by their order; none in a pool of our own."""
    only: tuple[str, ...] = ()
    """As in `contract.request.Request`: empty where the model's targets decide."""
    stand: Stand = "open"
    """How it stands; the lanes of one model are all `idle`, or none is."""


class Lanes(msgspec.Struct, frozen=True):
    """The lanes of a model as they stand: those to try, by tiers of one order, or the error where there is none."""

    tiers: tuple[tuple[Lane, ...], ...]
    single: tuple[Lane, ...]
    """The one lane, where there is no more to choose; empty elsewhere."""
    error: Callable[[], FaregateError] | None = None


def all_lanes(model: Model, pools: dict[str, Pool]) -> list[Lane]:
    """Gather a model's routes by their pools, by the lowest order of each; the weight is that of this order."""
    by_pool: dict[str, list[Route]] = {}
    for route in model.routes:
        if route.pool in pools:
            by_pool.setdefault(route.pool, []).append(route)
    lanes = []
    for name, routes in by_pool.items():
        routes.sort(key=lambda route: route.order)
        order = routes[0].order
        weight = sum(route.weight for route in routes if route.order == order)
        upstreams = tuple(dict.fromkeys(route.upstream for route in routes if route.upstream))
        lanes.append(Lane(pools[name], order, weight, upstreams))
    return sorted(lanes, key=lambda lane: lane.order)


def prepare(model: Model, lanes: Sequence[Lane], outlook: Outlook) -> Lanes:
    """Sort lanes into tiers by how they stand and by order."""
    if not lanes:
        return Lanes((), (), no_route)
    stands: dict[str, Stand] = {
        lane.pool.name: outlook.stand(model.name, lane.pool.name, lane.upstreams) for lane in lanes
    }
    known = [msgspec.structs.replace(lane, stand=stands[lane.pool.name]) for lane in lanes]
    ready = [lane for lane in known if lane.stand in ("open", "tripped")]
    left = ready or [lane for lane in known if lane.stand == "idle"]
    if not left:
        names = [name for lane in lanes for name in lane.upstreams]
        return Lanes((), (), lambda: not_configured(names))
    if len(left) == 1:
        return Lanes((tuple(left),), tuple(left))
    tiers: dict[tuple[bool, int], list[Lane]] = {}
    for lane in left:
        tiers.setdefault((lane.stand == "tripped", lane.order), []).append(lane)
    return Lanes(tuple(tuple(tiers[key]) for key in sorted(tiers)), ())


def not_configured(upstreams: Sequence[str]) -> Unavailable:
    """Make the error of a model none of whose upstreams has a key, naming the settings that are missing."""
    settings = " or ".join(upstream_setting(name, "KEY") for name in dict.fromkeys(upstreams))
    return Unavailable(
        f"No upstream of this model has a key here. Its operator sets {settings or 'the key of an upstream'}.",
        code="upstream_not_configured",
        param="model",
    )


def no_route() -> Unavailable:
    """Make the error of a model none of whose pools exists any more."""
    return Unavailable("No route serves this model at the moment.", code="no_route", param="model")


def no_way_left() -> InvalidRequest:
    """Make the error of a model whose caller's wishes leave no way to it."""
    return InvalidRequest(
        "What you say of providers leaves no way to this model. GET /v1/models lists its routes.",
        code="no_way_left",
        param="provider",
    )
