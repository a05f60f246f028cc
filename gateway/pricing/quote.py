"""The most a request can cost, before it runs.

The ceiling is the rating of the largest units that the input allows, with the very function that
rates the charge, so a charge for units within those bounds is at most the ceiling.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from gateway.contract.inputs import (
    ChatInput,
    CompletionInput,
    EmbeddingInput,
    ImageBlendInput,
    ImageEditInput,
    ImageInput,
    ImageRelightInput,
    ImageRestyleInput,
    ImageToVideoInput,
    ImageUpscaleInput,
    Input,
    MusicInput,
    RerankInput,
    SpeechInput,
    TalkingHeadInput,
    TranscriptionInput,
    VideoInput,
    VideoUpscaleInput,
    VoiceCloneInput,
)
from gateway.contract.inputs.text import MAX_OUTPUT_TOKENS
from gateway.contract.units import Units
from gateway.errors import Unprocessable
from gateway.pricing.bounds import chat_tokens, completion_tokens, embedding_tokens, rerank_tokens, speech_ms
from gateway.pricing.lines import PriceLine, price_lines
from gateway.pricing.media_bounds import (
    clone_units,
    image_units,
    music_units,
    talking_units,
    transcription_units,
    video_units,
    video_upscale_units,
)
from gateway.pricing.price import PriceComponent, PricedUnit, PriceVersion
from gateway.pricing.rate import depends, rate_nanos
from gateway.pricing.rows import NotSold, rows_for
from gateway.pricing.terms import NO_TERMS, Terms
from gateway.pricing.traits import traits_of


class Priced(Protocol):
    """What a quote needs to know of a model; `gateway.catalog.model.Model` has it."""

    @property
    def name(self) -> str:
        """The name by which it is called."""
        ...

    @property
    def price(self) -> PriceVersion | None:
        """The version in force."""
        ...

    @property
    def priced(self) -> tuple[str, ...]:
        """The parameters that a price may depend on."""
        ...

    @property
    def context_tokens(self) -> int:
        """The longest input and output together; 0 is no limit."""
        ...

    @property
    def max_output_tokens(self) -> int:
        """The output where a caller names no limit; 0 is what the context leaves."""
        ...

    @property
    def prompt_overhead_tokens(self) -> int:
        """What a chat template adds."""
        ...

    @property
    def image_tokens(self) -> int:
        """The most tokens of one image in a message; 0 where it takes none."""
        ...

    @property
    def audio_tokens_per_s(self) -> int:
        """The most tokens of one second of sound in a message; 0 where it takes none."""
        ...


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """The ceiling of a request: `nanos` to hold, and the units it stands for."""

    nanos: int
    units: Units
    price: PriceVersion
    terms: Terms = NO_TERMS
    """What it was computed under, and what its charge will be."""

    @property
    def lines(self) -> tuple[PriceLine, ...]:
        """The ceiling line by line."""
        return price_lines(self.price, self.units, terms=self.terms)


def ceiling(model: Priced, value: Input, price: PriceVersion | None = None, discount_ppm: int = 0) -> Quote:
    """Quote an input that fits the model, at a price and discount; where none is given, at the list price.

    Raises ValueError for a model without a price, which nobody may call, and Unprocessable for what the price does
    not cover.
    """
    price = price or model.price
    if price is None:
        raise ValueError(f"{model.name} has no price")
    units = _BOUNDS[type(value)](model, value)
    conditional = depends(price)
    terms = NO_TERMS
    if conditional or (model.priced and type(value) not in _TEXT):
        terms = Terms(traits=traits_of(model.priced, value), discount_ppm=discount_ppm)
    elif discount_ppm:
        terms = Terms(discount_ppm=discount_ppm)
    try:
        rows = rows_for(price.components, terms.traits) if conditional else price.components
    except NotSold as error:
        raise not_priced(model.name, error) from None
    _take_the_dearer(rows, units)
    return Quote(nanos=rate_nanos(price, units, terms=terms), units=units, price=price, terms=terms)


def not_priced(model: str, error: NotSold) -> Unprocessable:
    """Make the error of a request that no row of a price covers."""
    return Unprocessable(
        f"{model} has no price for {error.asked}. It is sold for {'; '.join(error.sold)}: ask for one of these.",
        code="not_priced",
        param=error.parameter,
    )


_TEXT = (ChatInput, CompletionInput, EmbeddingInput, RerankInput)
"""Of these, traits are kept only where the price looks at them: there are so many, and few prices do."""


def output_limit(model: Priced, value: ChatInput | CompletionInput) -> int:
    """Bound the output tokens of one choice: the caller's limit, else the model's, else the context."""
    asked = value.max_tokens
    if asked is None and isinstance(value, ChatInput):
        asked = value.max_completion_tokens
    limit = asked or model.max_output_tokens or model.context_tokens or MAX_OUTPUT_TOKENS
    return min(limit, model.context_tokens) if model.context_tokens else limit


def _text_units(model: Priced, value: ChatInput | CompletionInput, prompt: int) -> Units:
    context = model.context_tokens
    if context and prompt > context:
        prompt = context
    return Units(prompt, 0, (value.n or 1) * output_limit(model, value))


def _rerank_units(model: Priced, value: RerankInput) -> Units:
    return Units(rerank_tokens(value, model.prompt_overhead_tokens, model.context_tokens))


_BOUNDS: dict[type[Input], Callable[[Priced, Any], Units]] = {
    ChatInput: lambda model, value: _text_units(
        model,
        value,
        chat_tokens(value, model.prompt_overhead_tokens, model.image_tokens, model.audio_tokens_per_s),
    ),
    CompletionInput: lambda model, value: _text_units(
        model, value, completion_tokens(value, model.prompt_overhead_tokens)
    ),
    EmbeddingInput: lambda model, value: Units(
        embedding_tokens(value, model.prompt_overhead_tokens, model.context_tokens)
    ),
    RerankInput: _rerank_units,
    SpeechInput: lambda _, value: Units(characters=len(value.input), audio_ms=speech_ms(value)),
    VoiceCloneInput: lambda _, value: clone_units(value),
    MusicInput: lambda _, value: music_units(value),
    TranscriptionInput: lambda _, value: transcription_units(value),
    **dict.fromkeys(
        (ImageInput, ImageEditInput, ImageBlendInput, ImageRelightInput, ImageRestyleInput, ImageUpscaleInput),
        lambda _, value: image_units(value),
    ),
    **dict.fromkeys((VideoInput, ImageToVideoInput), lambda _, value: video_units(value)),
    VideoUpscaleInput: lambda _, value: video_upscale_units(value),
    TalkingHeadInput: lambda _, value: talking_units(value),
}


def _take_the_dearer(rows: tuple[PriceComponent, ...], units: Units) -> None:
    """Count all input as cached, and all output as reasoning, where that is what costs more."""
    picos = {component.unit: component.picos for component in rows}
    if _dearer(picos, "cached_input_token", "input_token"):
        units.cached_tokens = units.input_tokens
    if _dearer(picos, "reasoning_token", "output_token"):
        units.reasoning_tokens = units.output_tokens


def _dearer(picos: dict[PricedUnit, int], part: PricedUnit, whole: PricedUnit) -> bool:
    return part in picos and picos[part] > picos.get(whole, 0)
