"""OpenRouter's list of models, the answer of GET /api/v1/models: prices as decimal texts, for one token or request.

Its reference says that a price of "0" is no charge. Of `internal_reasoning` and `input_cache_read` that means none of
their own: those tokens are part of the completion and the prompt, and cost what these cost.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.catalog.imports.entry import Imported, Money, Skipped, plain
from gateway.catalog.imports.figures import NotReadable, amount, count
from gateway.contract.tasks import Task
from gateway.pricing.price import PricedUnit

ROWS: dict[str, PricedUnit] = {
    "prompt": "input_token",
    "input_cache_read": "cached_input_token",
    "completion": "output_token",
    "internal_reasoning": "reasoning_token",
    "request": "request",
}
READ_ONLY: tuple[PricedUnit, ...] = ("input_token", "cached_input_token", "request")
PARTS = ("input_cache_read", "internal_reasoning", "request")
"""Prices of which zero means that there is none of its own."""


def read_list(found: Any, exact: bool, context: int) -> Iterable[Imported | Skipped]:
    """Read the list. `context` stands in where a model's is not known; 0 leaves such models out."""
    rows = found.get("data") if isinstance(found, Mapping) else None
    if not isinstance(rows, list) or not rows:
        raise NotReadable("an object with a list `data` was expected")
    for row in rows:
        if not isinstance(row, Mapping) or not isinstance(row.get("id"), str):
            raise NotReadable("each of `data` was expected to have an `id`")
        yield _model(row["id"], row, exact, context)


def _model(name: str, row: Mapping[str, Any], exact: bool, context: int) -> Imported | Skipped:
    task = _task(row.get("architecture"))
    if task is None:
        return Skipped(name=name, why="it gives neither text nor embeddings")
    known = count(row, "context_length") or context
    if not known:
        return Skipped(name=name, why="its context is not known: say one with --context")
    pricing, money = row.get("pricing"), Money()
    _read_prices(task, pricing if isinstance(pricing, Mapping) else {}, money)
    whole = {"input_token", "output_token"} if task == "chat" else {"input_token"}
    top = row.get("top_provider")
    return Imported(
        name=name,
        wire=name,
        task=task,
        context_tokens=known,
        max_output_tokens=min(count(top if isinstance(top, Mapping) else {}, "max_completion_tokens"), known, 1_000_000)
        if task == "chat"
        else 0,
        price=money.price(exact) if whole <= money.rows.keys() else (),
        unsaid=tuple(money.unsaid),
    )


def _task(architecture: object) -> Task | None:
    given = architecture.get("output_modalities") if isinstance(architecture, Mapping) else None
    if not isinstance(given, list) or "text" in given:
        return "chat"
    return "embedding" if "embeddings" in given else None


def _read_prices(task: Task, pricing: Mapping[str, Any], money: Money) -> None:
    for key, value in pricing.items():
        figure, unit = amount(value), ROWS.get(key)
        if figure is None:
            if value not in (None, [], {}):
                money.unsaid.append(f"{key}, which is no number")
        elif unit is None or (task == "embedding" and unit not in READ_ONLY):
            if figure:
                money.unsaid.append(f"{key} {plain(figure)}")
        elif figure or key not in PARTS:
            money.add(key, figure, unit)
