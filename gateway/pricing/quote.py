"""The most a request can cost, before it runs.

The ceiling is the rating of the largest units that the input allows, with the very function that
rates the charge, so a charge for units within those bounds is at most the ceiling.
"""

from typing import Protocol

import msgspec

from gateway.contract.inputs import MAX_OUTPUT_TOKENS, ChatInput, CompletionInput, EmbeddingInput, Input, SpeechInput
from gateway.contract.units import Units
from gateway.pricing.bounds import chat_tokens, completion_tokens, embedding_tokens, speech_ms
from gateway.pricing.lines import PriceLine, price_lines
from gateway.pricing.price import PricedUnit, PriceVersion
from gateway.pricing.rate import rate_nanos


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


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """The ceiling of a request: `nanos` to hold, and the units it stands for."""

    nanos: int
    units: Units
    price: PriceVersion

    @property
    def lines(self) -> tuple[PriceLine, ...]:
        """The ceiling line by line."""
        return price_lines(self.price, self.units)


def ceiling(model: Priced, value: Input) -> Quote:
    """Quote an input that fits the model. Raises ValueError for a model without a price, which nobody may call."""
    price = model.price
    if price is None:
        raise ValueError(f"{model.name} has no price")
    if isinstance(value, ChatInput):
        units = _text_units(model, value, chat_tokens(value, model.prompt_overhead_tokens))
    elif isinstance(value, CompletionInput):
        units = _text_units(model, value, completion_tokens(value, model.prompt_overhead_tokens))
    elif isinstance(value, EmbeddingInput):
        units = Units(embedding_tokens(value, model.prompt_overhead_tokens, model.context_tokens))
    else:
        units = _speech_units(value)
    _take_the_dearer(price, units)
    return Quote(nanos=rate_nanos(price, units), units=units, price=price)


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


def _speech_units(value: SpeechInput) -> Units:
    return Units(characters=len(value.input), audio_ms=speech_ms(value))


def _take_the_dearer(price: PriceVersion, units: Units) -> None:
    """Count all input as cached, and all output as reasoning, where that is what costs more."""
    picos = {component.unit: component.picos for component in price.components}
    if _dearer(picos, "cached_input_token", "input_token"):
        units.cached_tokens = units.input_tokens
    if _dearer(picos, "reasoning_token", "output_token"):
        units.reasoning_tokens = units.output_tokens


def _dearer(picos: dict[PricedUnit, int], part: PricedUnit, whole: PricedUnit) -> bool:
    return part in picos and picos[part] > picos.get(whole, 0)
