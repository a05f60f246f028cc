"""The row of a model in `GET /v1/models`: what it does, costs and takes, and whether it can be called now."""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from gateway.catalog.model import Model, Route
from gateway.catalog.prices import row_text
from gateway.catalog.typical import default_rows, typical_attos
from gateway.contract.history import ServiceTimes
from gateway.contract.pools import UpstreamState, WorkerStatus, upstream_setting
from gateway.money import attos_text, decimal_text
from gateway.pricing.conditions import when_plain
from gateway.pricing.lines import minimum_usd
from gateway.pricing.price import PriceComponent, PricedUnit, PriceVersion

State = Literal["ready", "on_demand", "tripped", "loading", "failed", "unset", "no_worker", "not_for_sale"]
"""How a model stands: a `ready` one answers at once, one `on_demand` when it has been loaded; all upstreams of a
`tripped` one fail of late, and it is tried again soon; requests for the others wait. One that is `unset` has no key for
its upstream, and like one that is not for sale it cannot be called."""

AVAILABLE: tuple[State, ...] = ("ready", "on_demand")

PRICING: dict[PricedUnit, str] = {
    "input_token": "prompt",
    "output_token": "completion",
    "request": "request",
    "image": "image",
    "cached_input_token": "input_cache_read",
    "reasoning_token": "internal_reasoning",
}
"""What OpenRouter calls the units that it prices, too."""
_ALWAYS = ("prompt", "completion", "request", "image")


class PriceRow(TypedDict):
    """One price component."""

    unit: str
    usd: str
    """Of one unit, an exact decimal."""
    text: str
    when: NotRequired[dict[str, Any]]
    """For which requests it counts, by parameter: a value, values, or bounds `from` and `below`; not there for all."""


class Availability(msgspec.Struct, frozen=True):
    """How a model stands, and why in words."""

    state: State
    reason: str


class ModelRow(TypedDict):
    """An OpenAI list row, and what Faregate adds."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str
    aliases: list[str]
    tasks: list[str]
    available: bool
    unavailable_reason: str | None
    """Why it cannot be called at once; None where it can."""
    state: State
    reason: str
    price: list[PriceRow]
    """What the caller's account pays. Of the rows of one unit the first whose `when` holds counts."""
    minimum_usd: str | None
    """The least that a request costs; None where there is no such price."""
    discount: str | None
    """The share that is off everything for the caller's account, as a decimal; None for none."""
    price_version: int | None
    pricing: dict[str, str]
    """The same as OpenRouter tells it: US dollars of one token, request or image, as decimals."""
    typical_usd: str | None
    """What a typical request of its first task costs; None without a price."""
    parameters: dict[str, dict[str, Any]]
    routes: list[dict[str, Any]]
    outcome: dict[str, str]
    picks: list[dict[str, str]]
    context_tokens: int | None
    max_output_tokens: int | None
    deadline_s: int
    weights: dict[str, str] | None
    """Where its weights are open: their repository, size and precision."""
    speed: dict[str, float] | None
    """How long requests took of late, without waiting; None without a history."""


def model_row(
    model: Model, workers: Sequence[WorkerStatus], times: ServiceTimes | None = None, discount_ppm: int = 0
) -> ModelRow:
    """Make the row of a model. `workers` are those of its pools whose heartbeats are fresh; `times` say its speed.

    Its price is that of who asks, who has `discount_ppm` millionths off it.
    """
    stands = availability(model, workers)
    typical = typical_attos(model)
    return ModelRow(
        id=model.name,
        object="model",
        created=int(model.price.valid_from.timestamp()) if model.price else 0,
        owned_by="faregate",
        description=model.description,
        aliases=list(model.aliases),
        tasks=list(model.tasks),
        available=stands.state in AVAILABLE,
        unavailable_reason=None if stands.state in AVAILABLE else stands.reason,
        state=stands.state,
        reason=stands.reason,
        price=price_rows(model.price),
        minimum_usd=minimum_usd(model.price) if model.price and model.price.minimum_nanos else None,
        discount=decimal_text(discount_ppm, 6) if discount_ppm else None,
        price_version=model.price.id if model.price else None,
        pricing=pricing(default_rows(model, model.price) if model.price else ()),
        typical_usd=None if typical is None else attos_text(typical),
        parameters={name: _given(parameter) for name, parameter in model.parameters.items()},
        routes=[_route(model, route, workers) for route in model.routes],
        outcome=msgspec.to_builtins(model.outcome),
        picks=[msgspec.to_builtins(pick) for pick in model.picks],
        context_tokens=model.context_tokens or None,
        max_output_tokens=model.max_output_tokens or None,
        deadline_s=model.deadline_s,
        weights=msgspec.to_builtins(model.weights) if model.weights.repository else None,
        speed=None if times is None else _speed(times),
    )


def price_rows(price: PriceVersion | None) -> list[PriceRow]:
    """Write the components of a price, each as an exact decimal of one unit and in words."""
    if price is None:
        return []
    return [_price_row(part) for part in price.components]


def _price_row(part: PriceComponent) -> PriceRow:
    row = PriceRow(unit=part.unit, usd=part.usd, text=row_text(part))
    if part.when:
        row["when"] = when_plain(part.when)
    return row


def pricing(rows: Sequence[PriceComponent]) -> dict[str, str]:
    """Write the prices of tokens, requests and images as OpenRouter does: `"0"` where there is none."""
    told = dict.fromkeys(_ALWAYS, "0")
    for part in rows:
        if part.unit in PRICING:
            told[PRICING[part.unit]] = part.usd
    return told


def _speed(times: ServiceTimes) -> dict[str, float]:
    return {"p50_s": times.p50_ms / 1000, "p90_s": times.p90_ms / 1000, "units_per_s": times.units_per_s}


def availability(model: Model, workers: Sequence[WorkerStatus]) -> Availability:
    """Say how a model stands, by the best of its workers and upstreams."""
    stands = _by_workers(model, workers)
    if stands.state not in AVAILABLE or not all(route.upstream for route in model.routes):
        return stands
    told = {_upstream_state(route, workers) for route in model.routes}
    if told & {"closed", "half_open", ""}:
        return stands
    if "open" in told:
        return Availability("tripped", _REASONS["tripped"])
    return Availability("unset", _unset(model))


def _upstream_state(route: Route, workers: Sequence[WorkerStatus]) -> str:
    """Give the state of an upstream's breaker by the worker that sees it best; empty where nobody has told."""
    told = _upstream_told(route, workers)
    return told.state if told is not None else ""


def _upstream_told(route: Route, workers: Sequence[WorkerStatus]) -> UpstreamState | None:
    states = [
        state
        for worker in workers
        if worker.pool == route.pool and not worker.draining and (state := worker.upstreams.get(route.upstream))
    ]
    return min(states, key=lambda state: _BEST.index(state.state), default=None)


_BEST = ("closed", "half_open", "open", "unset")


def _unset(model: Model) -> str:
    names = dict.fromkeys(upstream_setting(route.upstream, "KEY") for route in model.routes if route.upstream)
    return f"{_REASONS['unset']} Its operator sets {' or '.join(names)}." if names else _REASONS["unset"]


def _by_workers(model: Model, workers: Sequence[WorkerStatus]) -> Availability:
    if model.price is None:
        return Availability("not_for_sale", "It has no price yet.")
    pools = {route.pool for route in model.routes}
    states = [
        state
        for worker in workers
        if worker.pool in pools and not worker.draining and (state := worker.models.get(model.name)) is not None
    ]
    for name in ("ready", "on_demand", "loading", "failed", "unset"):
        best = next((state for state in states if state.state == name), None)
        if best is not None and name == "unset":
            return Availability(name, _unset(model))
        if best is not None:
            return Availability(name, _REASONS[name] + (f" {best.detail}" if best.detail and name != "ready" else ""))
    return Availability("no_worker", "No worker serves it at the moment; requests wait in its queue.")


_REASONS = {
    "ready": "",
    "on_demand": "It is loaded when a request comes for it, which takes its time.",
    "tripped": "Its upstreams fail at the moment, and are tried again soon.",
    "loading": "It is being loaded; requests wait in its queue.",
    "failed": "Its engine could not load it.",
    "unset": "Its upstream has no key.",
}


def _given(parameter: msgspec.Struct) -> dict[str, Any]:
    """Write a parameter without the fields that say nothing."""
    plain: dict[str, Any] = msgspec.to_builtins(parameter)
    silent = {name for name in ("required", "url") if not plain[name]}
    return {
        name: value
        for name, value in plain.items()
        if name not in silent and (value not in (None, "", ()) or name == "priced")
    }


def _route(model: Model, route: Route, workers: Sequence[WorkerStatus]) -> dict[str, Any]:
    """Write a route and how it stands, without what is between the operator and the upstream: fields, and its cost."""
    plain: dict[str, Any] = {"pool": route.pool, "order": route.order, "weight": route.weight}
    if not route.upstream:
        one = msgspec.structs.replace(model, routes=(route,))
        return plain | {"state": _by_workers(one, workers).state}
    told = _upstream_told(route, workers)
    state: dict[str, Any] = {"breaker": None, "latency_ms": None, "error_rate": None}
    if told is not None:
        state = {"breaker": told.state, "latency_ms": told.latency_ms or None, "error_rate": told.error_rate}
    return plain | {"upstream": route.upstream, "model": route.model} | state
