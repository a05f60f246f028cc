"""What a typical request of a model costs: how models of one task are compared before there is an input.

The units of a typical request are fixed here for each task, and told in `docs/reference/http.md`. Its cost is the exact
sum over the price's components, in attos (1e-18 US dollars), and is not rounded.
"""

import msgspec

from gateway.catalog.model import Model
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.pricing.conditions import Trait
from gateway.pricing.price import PriceComponent, PricedUnit, PriceVersion
from gateway.pricing.rate import line_attos, quantities
from gateway.pricing.rows import is_conditional
from gateway.pricing.traits import MEASURED_TRAITS

_SECONDS = 1000
_PICTURE = Units(images=1, pixels=1024 * 1024, steps=30)
_SPEECH = Units(characters=1_000, audio_ms=60 * _SECONDS)
_FILM = Units(video_ms=5 * _SECONDS, pixels=1280 * 720, steps=30)

TYPICAL: dict[Task, Units] = {
    "chat": Units(input_tokens=1_000, output_tokens=500),
    "completion": Units(input_tokens=1_000, output_tokens=500),
    "embedding": Units(input_tokens=1_000),
    "rerank": Units(input_tokens=10_000),
    "text-to-speech": _SPEECH,
    "voice-clone": _SPEECH,
    "music": Units(characters=100, audio_ms=60 * _SECONDS),
    "speech-to-text": Units(audio_ms=60 * _SECONDS),
    "text-to-image": _PICTURE,
    "image-edit": _PICTURE,
    "image-blend": _PICTURE,
    "image-relight": _PICTURE,
    "image-restyle": _PICTURE,
    "image-upscale": Units(images=1, pixels=2048 * 2048, steps=30),
    "text-to-video": _FILM,
    "image-to-video": _FILM,
    "video-upscale": _FILM,
    "talking-head": Units(characters=100, audio_ms=5 * _SECONDS, video_ms=5 * _SECONDS, pixels=512 * 512, steps=30),
}
"""What is measured of a typical request of each task."""


def typical_attos(model: Model, task: Task | None = None) -> int | None:
    """Price a typical request of a task, the model's first one where none is named; None without a price."""
    if model.price is None:
        return None
    units = TYPICAL[task or model.tasks[0]]
    price = msgspec.structs.replace(model.price, components=default_rows(model, model.price, task))
    return sum(line_attos(component, quantity) for component, quantity in quantities(price, units))


def default_rows(model: Model, price: PriceVersion, task: Task | None = None) -> tuple[PriceComponent, ...]:
    """Give the rows of a price that count for a caller who leaves everything out, without their conditions.

    Where none holds then, the first row of the unit counts.
    """
    if not is_conditional(price.components):
        return price.components
    traits = _default_traits(model, task or model.tasks[0])
    chosen: dict[PricedUnit, PriceComponent] = {}
    for row in price.components:
        if row.unit not in chosen and all(condition.holds(traits) for condition in row.when):
            chosen[row.unit] = PriceComponent(row.unit, row.picos)
    for row in price.components:
        chosen.setdefault(row.unit, PriceComponent(row.unit, row.picos))
    return tuple(chosen.values())


def _default_traits(model: Model, task: Task) -> dict[str, Trait]:
    """Give the traits of a typical request: defaults of parameters, and the size and length of `TYPICAL`."""
    film = {"width": 1280, "height": 720, "seconds": 5}
    picture = {"width": 1024, "height": 1024, "seconds": 60}
    sizes = film if TYPICAL[task].video_ms else picture
    traits: dict[str, Trait] = {name: sizes[name] for name in MEASURED_TRAITS.get(task, ())}
    for name in model.priced:
        default = model.parameters[name].default
        if isinstance(default, str | int | float | bool):
            traits[name] = default
    return traits
