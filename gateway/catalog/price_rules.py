"""What must hold between a model and a price of it, whichever door the price comes through."""

from collections.abc import Iterator

import msgspec

from gateway.catalog.model import Model, Sold
from gateway.catalog.parameters import Parameter
from gateway.catalog.vendor import is_of_type
from gateway.catalog.when import shadowed
from gateway.contract.inputs import SpeechInput
from gateway.contract.inputs.image import MAX_IMAGES
from gateway.contract.inputs.video import MAX_VIDEO_S
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.money import NANOS_PER_USD, round_attos, usd_text
from gateway.pricing.bounds import speech_ms
from gateway.pricing.conditions import Condition, trait_text
from gateway.pricing.price import PriceComponent, PricedUnit
from gateway.pricing.rate import line_attos, measured_quantity
from gateway.pricing.traits import MEASURED_TRAITS

_TEXT: tuple[PricedUnit, ...] = ("input_token", "cached_input_token", "output_token", "reasoning_token")
_IMAGE: tuple[PricedUnit, ...] = ("request", "image", "megapixel", "step")
_VIDEO: tuple[PricedUnit, ...] = ("request", "megapixel", "step", "video_second")
TASK_UNITS: dict[Task, tuple[PricedUnit, ...]] = {
    "chat": ("request", *_TEXT),
    "completion": ("request", *_TEXT),
    "embedding": ("request", "input_token", "cached_input_token"),
    "rerank": ("request", "input_token", "cached_input_token"),
    "text-to-speech": ("request", "character", "audio_second"),
    "voice-clone": ("request", "character", "audio_second"),
    "music": ("request", "audio_second"),
    "speech-to-text": ("request", "audio_second"),
    "text-to-image": _IMAGE,
    "image-edit": _IMAGE,
    "image-blend": _IMAGE,
    "image-relight": _IMAGE,
    "image-restyle": _IMAGE,
    "image-upscale": _IMAGE,
    "text-to-video": _VIDEO,
    "image-to-video": _VIDEO,
    "video-upscale": _VIDEO,
    "talking-head": ("request", "character", "megapixel", "step", "audio_second", "video_second"),
}
"""What is measured of each task, and so what it can be priced by."""

MAX_REQUEST_USD = 1_000_000
"""No request may be priced so that it could cost more: amounts then stay far inside 64 bits."""
MOST_ROWS = 200
MOST_CHARACTERS = 100_000
MOST_TEXTS = 2_048
"""Of an embedding or a ranking; each takes a context at most."""
MOST_PIXELS = 100_000_000_000
"""Of all frames of the largest video: ten minutes in full high definition, and the largest images."""
MOST_STEPS = 500


class PriceProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a price of a model."""

    row: int | None
    """Which row; None where all of them are meant."""
    field: str
    """Of the row: `per`, `usd` or `when`; of the whole `price` or `minimum_usd`."""
    expected: str
    found: str

    @property
    def place(self) -> str:
        """Where it is, as in `price[2].when`."""
        return self.field if self.row is None else f"price[{self.row}].{self.field}"


def price_problems(model: Model, sold: Sold) -> Iterator[PriceProblem]:
    """Say all that is wrong with a price of a model."""
    if len(sold.rows) > MOST_ROWS:
        yield PriceProblem(row=None, field="price", expected=f"at most {MOST_ROWS} rows", found=str(len(sold.rows)))
        return
    before: dict[PricedUnit, list[tuple[Condition, ...]]] = {}
    for number, row in enumerate(sold.rows):
        yield from unit_problems(model, row, number)
        names = [condition.parameter for condition in row.when]
        if len(set(names)) < len(names):
            yield _of_row(number, "each parameter once", row.words)
        for condition in row.when:
            yield from _condition_problems(model, condition, number)
        others = before.setdefault(row.unit, [])
        if shadowed(row.when, others):
            found = row.words or f"a second price per {row.unit.replace('_', ' ')}"
            yield _of_row(number, "a row that can count: one before it always does", found)
        others.append(row.when)
    most = max(most_nanos(model, sold.rows), sold.minimum_nanos)
    if most > MAX_REQUEST_USD * NANOS_PER_USD:
        expected = f"at most ${MAX_REQUEST_USD} for the largest request"
        yield PriceProblem(row=None, field="price", expected=expected, found=f"${usd_text(most)}")
    if sold.minimum_nanos and not sold.rows:
        yield PriceProblem(row=None, field="minimum_usd", expected="no minimum without a price", found="one")


def _of_row(number: int, expected: str, found: str) -> PriceProblem:
    return PriceProblem(row=number, field="when", expected=expected, found=found)


def unit_problems(model: Model, row: PriceComponent, number: int) -> Iterator[PriceProblem]:
    """Say whether the tasks of a model do not measure what a row is for."""
    measured = [unit for task in model.tasks for unit in TASK_UNITS[task]]
    if row.unit not in measured:
        said = ", ".join(unit.replace("_", " ") for unit in measured)
        expected = f"prices for what its tasks measure ({said})"
        yield PriceProblem(row=number, field="per", expected=expected, found=row.unit.replace("_", " "))


def _condition_problems(model: Model, condition: Condition, number: int) -> Iterator[PriceProblem]:
    name = condition.parameter
    if any(name in MEASURED_TRAITS.get(task, ()) for task in model.tasks):
        if any(isinstance(value, str | bool) for value in condition.values):
            yield _of_row(number, f"numbers for {name}", condition.text)
        return
    parameter = model.parameters.get(name)
    if parameter is None or not parameter.priced:
        known = [*model.priced, *dict.fromkeys(each for task in model.tasks for each in MEASURED_TRAITS.get(task, ()))]
        expected = f"a parameter of the model that is marked `priced` ({', '.join(known) or 'it has none'})"
        yield _of_row(number, expected, name)
        return
    wrong = _misfit(parameter, condition)
    if wrong:
        yield _of_row(number, f"for {name}: {wrong}", condition.text)


def _misfit(parameter: Parameter, condition: Condition) -> str:
    """Say what a condition on a parameter should have been; empty where it fits."""
    if parameter.type in ("array", "object"):
        return "a parameter that is text, a number, or true and false"
    if not condition.values:
        return "" if parameter.type in ("integer", "number") else "values, since only numbers have bounds"
    for value in condition.values:
        if not is_of_type(parameter.type, value):
            return f"values of the type {parameter.type}"
        if parameter.choices and value not in parameter.choices:
            return f"of its choices ({', '.join(trait_text(each) for each in parameter.choices)})"
        size = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        if size is not None and not _within(parameter, size):
            return "values within its minimum and maximum"
    return ""


def _within(parameter: Parameter, size: float) -> bool:
    low, high = parameter.minimum, parameter.maximum
    return (low is None or size >= low) and (high is None or size <= high)


def most_nanos(model: Model, price: tuple[PriceComponent, ...]) -> int:
    """Price the largest request that the model could ever take, each unit at its dearest row."""
    context = model.context_tokens
    units = Units(
        input_tokens=context * (MOST_TEXTS if "embedding" in model.tasks or "rerank" in model.tasks else 1),
        output_tokens=context,
        characters=MOST_CHARACTERS,
        audio_ms=speech_ms(SpeechInput(input="\U0001f600" * MOST_CHARACTERS, speed=0.25)),
        images=MAX_IMAGES,
        pixels=MOST_PIXELS,
        steps=MAX_IMAGES * MOST_STEPS,
        video_ms=MAX_VIDEO_S * 1000,
    )
    units.cached_tokens, units.reasoning_tokens = units.input_tokens, units.output_tokens
    dearest: dict[PricedUnit, int] = {}
    for row in price:
        attos = line_attos(row, measured_quantity(row.unit, units))
        dearest[row.unit] = max(dearest.get(row.unit, 0), attos)
    return round_attos(sum(dearest.values()))
