"""The row of a model in `GET /v1/models`: what it does, costs and takes, and whether it can be called now."""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import msgspec

from gateway.catalog.model import Model
from gateway.catalog.prices import row_text
from gateway.contract.pools import WorkerStatus
from gateway.pricing.price import PriceVersion

State = Literal["ready", "loading", "failed", "no_worker", "not_for_sale"]
"""How a model stands: only a `ready` one answers at once; requests for the others wait; the last cannot be called."""


class PriceRow(TypedDict):
    """One price component."""

    unit: str
    usd: str
    """Of one unit, an exact decimal."""
    text: str


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
    tasks: list[str]
    available: bool
    state: State
    reason: str
    price: list[PriceRow]
    price_version: int | None
    parameters: dict[str, dict[str, Any]]
    routes: list[dict[str, Any]]
    outcome: dict[str, str]
    picks: list[dict[str, str]]
    context_tokens: int | None
    max_output_tokens: int | None
    deadline_s: int


def model_row(model: Model, workers: Sequence[WorkerStatus]) -> ModelRow:
    """Make the row of a model. `workers` are those of its pools whose heartbeats are fresh."""
    stands = availability(model, workers)
    return ModelRow(
        id=model.name,
        object="model",
        created=int(model.price.valid_from.timestamp()) if model.price else 0,
        owned_by="faregate",
        description=model.description,
        tasks=list(model.tasks),
        available=stands.state == "ready",
        state=stands.state,
        reason=stands.reason,
        price=price_rows(model.price),
        price_version=model.price.id if model.price else None,
        parameters={name: _given(parameter) for name, parameter in model.parameters.items()},
        routes=[msgspec.to_builtins(route) for route in model.routes],
        outcome=msgspec.to_builtins(model.outcome),
        picks=[msgspec.to_builtins(pick) for pick in model.picks],
        context_tokens=model.context_tokens or None,
        max_output_tokens=model.max_output_tokens or None,
        deadline_s=model.deadline_s,
    )


def price_rows(price: PriceVersion | None) -> list[PriceRow]:
    """Write the components of a price, each as an exact decimal of one unit and in words."""
    if price is None:
        return []
    return [PriceRow(unit=part.unit, usd=part.usd, text=row_text(part)) for part in price.components]


def availability(model: Model, workers: Sequence[WorkerStatus]) -> Availability:
    """Say how a model stands, by the best of its workers."""
    if model.price is None:
        return Availability("not_for_sale", "It has no price yet.")
    pools = {route.pool for route in model.routes}
    states = [
        state
        for worker in workers
        if worker.pool in pools and not worker.draining and (state := worker.models.get(model.name)) is not None
    ]
    for name in ("ready", "loading", "failed"):
        best = next((state for state in states if state.state == name), None)
        if best is not None:
            return Availability(name, _REASONS[name] + (f" {best.detail}" if best.detail and name != "ready" else ""))
    return Availability("no_worker", "No worker serves it at the moment; requests wait in its queue.")


_REASONS = {
    "ready": "",
    "loading": "It is being loaded; requests wait in its queue.",
    "failed": "Its engine could not load it.",
}


def _given(parameter: msgspec.Struct) -> dict[str, Any]:
    """Write a parameter without the fields that say nothing."""
    plain: dict[str, Any] = msgspec.to_builtins(parameter)
    return {name: value for name, value in plain.items() if value not in (None, "", ()) or name == "priced"}
