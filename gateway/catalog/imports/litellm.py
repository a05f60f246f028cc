"""LiteLLM's price map: one object of models by name, with a price for each of many things that can be counted.

Keys and their meaning: model_prices_and_context_window.json of BerriAI/litellm, and its cost_calculator.py for which
counts where several of one kind stand. Prices are dollars for one token, character, image, pixel or second.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from gateway.catalog.imports.entry import Imported, Money, Skipped, plain
from gateway.catalog.imports.figures import NotReadable, amount, count
from gateway.contract.tasks import Task
from gateway.pricing.price import PricedUnit

MODES: dict[str, Task] = {
    "chat": "chat",
    "completion": "completion",
    "embedding": "embedding",
    "rerank": "rerank",
    "image_generation": "text-to-image",
    "image_edit": "image-edit",
    "video_generation": "text-to-video",
    "audio_speech": "text-to-speech",
    "audio_transcription": "speech-to-text",
}
TEXT: tuple[Task, ...] = ("chat", "completion", "embedding", "rerank")
WRITES: tuple[Task, ...] = ("chat", "completion")

Counted = tuple[PricedUnit, int]
"""A unit, and how many of what the key counts are one of it."""

_READ: dict[str, Counted] = {
    "input_cost_per_token": ("input_token", 1),
    "cache_read_input_token_cost": ("cached_input_token", 1),
    "input_cost_per_token_cache_hit": ("cached_input_token", 1),
    "input_cost_per_request": ("request", 1),
}
_WRITTEN: dict[str, Counted] = {
    "output_cost_per_token": ("output_token", 1),
    "output_cost_per_reasoning_token": ("reasoning_token", 1),
}
_IMAGE: dict[str, Counted] = {
    "input_cost_per_image": ("image", 1),
    "output_cost_per_image": ("image", 1),
    "input_cost_per_pixel": ("megapixel", 1_000_000),
}
_VIDEO: dict[str, Counted] = {
    "output_cost_per_video_per_second": ("video_second", 1),
    "output_cost_per_second": ("video_second", 1),
}
_KEYS: dict[Task, dict[str, Counted]] = {
    "chat": _READ | _WRITTEN,
    "completion": _READ | _WRITTEN,
    "embedding": _READ,
    "rerank": _READ,
    "text-to-image": _IMAGE,
    "image-edit": _IMAGE,
    "text-to-video": _VIDEO,
    "text-to-speech": {"input_cost_per_character": ("character", 1), "output_cost_per_second": ("audio_second", 1)},
    "speech-to-text": {"input_cost_per_second": ("audio_second", 1), "output_cost_per_second": ("audio_second", 1)},
}
"""Which keys are price rows, by task."""

ONE_COUNTS: tuple[Task, ...] = ("text-to-image", "image-edit", "text-to-video", "speech-to-text")
"""Tasks of which LiteLLM takes the first key that is there, and never adds up several."""

SERVICES = ("_batches", "_priority", "_flex", "_balanced", "_ultrafast", "_decisions")
"""Ends of keys that price a service which has to be asked for, and which no call from here asks for."""


def read_map(found: Any, exact: bool, context: int) -> Iterable[Imported | Skipped]:
    """Read a price map. `context` stands in for a text model's where the map knows none; 0 leaves such models out."""
    if not isinstance(found, Mapping) or not any(isinstance(entry, Mapping) for entry in found.values()):
        raise NotReadable("an object of models by name was expected")
    for name, entry in found.items():
        if name != "sample_spec" and isinstance(entry, Mapping):
            yield _model(name, entry, exact, context)


def _model(name: str, entry: Mapping[str, Any], exact: bool, context: int) -> Imported | Skipped:
    mode = entry.get("mode")
    task = MODES.get(mode) if isinstance(mode, str) else None
    if task is None:
        return Skipped(name=name, why=f"no task of ours is its mode {str(mode)[:40]}")
    known = count(entry, "max_input_tokens", "max_tokens") or context if task in TEXT else 0
    if task in TEXT and not known:
        return Skipped(name=name, why="its context is not known: say one with --context")
    money = Money()
    _read_prices(task, entry, money)
    return Imported(
        name=name,
        wire=_wire(name, entry.get("litellm_provider")),
        task=task,
        context_tokens=known,
        max_output_tokens=min(count(entry, "max_output_tokens", "max_tokens"), known, 1_000_000)
        if task in WRITES
        else 0,
        price=money.price(exact) if complete(task, money) else (),
        unsaid=tuple(money.unsaid),
        elsewhere=tuple(money.elsewhere),
    )


def complete(task: Task, money: Money) -> bool:
    """Say whether the rows price what the task always measures: a part of a price alone would sell too cheaply."""
    if task in WRITES:
        return "request" in money.rows or {"input_token", "output_token"} <= money.rows.keys()
    return bool(money.rows)


def _read_prices(task: Task, entry: Mapping[str, Any], money: Money) -> None:
    figures = {key: value for key, value in entry.items() if "cost" in key and value is not None}
    used = ""
    for key, (unit, each) in _KEYS[task].items():
        figure = amount(figures.get(key))
        if figure is None:
            continue
        if task in ONE_COUNTS and (used or figure == 0):
            continue
        if unit in ("cached_input_token", "reasoning_token") and figure == 0:
            continue  # zero stands there for `has none`: these tokens then cost what the others do
        del figures[key]
        money.add(key, figure, unit, each)
        used = key
    same = amount(entry.get(used)) if used and task in ONE_COUNTS else None
    for key, value in figures.items():
        if key in _KEYS[task] and same is not None and amount(value) == same:
            continue
        _leave_unsaid(key, value, money)


def _leave_unsaid(key: str, value: object, money: Money) -> None:
    """Note what has no row, unless it is zero."""
    figure = amount(value)
    if isinstance(value, Mapping):
        parts = [(part, amount(each)) for part, each in value.items()]
        text = ", ".join(f"{part} {plain(each)}" for part, each in parts if each)
        if not text:
            return
        words = f"{key}: {text}"
    elif figure is None:
        words = f"{key}, which is no number"
    elif figure == Decimal(0):
        return
    else:
        words = f"{key} {plain(figure)}"
    (money.elsewhere if key.endswith(SERVICES) else money.unsaid).append(words)


def _wire(name: str, provider: object) -> str:
    """Give the name without the provider that LiteLLM writes before it."""
    head, slash, rest = name.partition("/")
    known = provider if isinstance(provider, str) else ""
    return rest if slash and rest and head and (known == head or known.startswith((f"{head}-", f"{head}_"))) else name
