"""The ceiling: it bounds every charge, it is exact where the input says everything, and it is cheap."""

import json
import timeit
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.catalog.model import Model, OutcomePolicy
from gateway.contract.inputs import ChatInput, CompletionInput, EmbeddingInput, SpeechInput
from gateway.contract.inputs.text import Function, JsonSchema, JsonSchemaFormat, Message, TextPart, Tool
from gateway.contract.units import Units
from gateway.money import parse_price, parse_usd
from gateway.pricing.bounds import chat_tokens, speech_ms
from gateway.pricing.price import PriceComponent, PricedUnit, PriceVersion
from gateway.pricing.quote import ceiling, output_limit
from gateway.pricing.rate import charge_nanos

TOKEN_UNITS: tuple[PricedUnit, ...] = (
    "request",
    "input_token",
    "cached_input_token",
    "output_token",
    "reasoning_token",
)


def model_of(price: dict[PricedUnit, str], **fields: Any) -> Model:
    parts = tuple(PriceComponent(unit, parse_price(usd)) for unit, usd in price.items())
    version = PriceVersion(1, 1, parts, datetime(2026, 1, 1, tzinfo=UTC))
    return Model(
        **{"name": "m", "tasks": ("chat",), "description": "A model.", "routes": (), "price": version, **fields}
    )


def said(text: str) -> ChatInput:
    return ChatInput(messages=[Message(role="user", content=text)], max_tokens=10)


def test_a_price_per_request_is_the_whole_ceiling() -> None:
    assert ceiling(model_of({"request": "0.001"}, context_tokens=100), said("hello")).nanos == parse_usd("0.001")


def test_a_text_has_at_most_as_many_tokens_as_bytes() -> None:
    model = model_of({"input_token": "1"}, context_tokens=1000)
    assert ceiling(model, said("hello")).units.input_tokens == 5
    assert ceiling(model, said("héllo €")).units.input_tokens == 10


def test_the_template_adds_its_overhead_to_each_message_and_once_to_the_whole() -> None:
    model = model_of({"input_token": "1"}, context_tokens=1000, prompt_overhead_tokens=7)
    two = ChatInput(messages=[Message(role="user", content="a"), Message(role="assistant", content="b")])
    assert ceiling(model, two).units.input_tokens == 2 + 3 * 7


def test_input_and_output_are_capped_by_the_context() -> None:
    units = ceiling(model_of({"input_token": "1"}, context_tokens=50), said("x" * 1000)).units
    assert (units.input_tokens, units.output_tokens) == (50, 10)


@pytest.mark.parametrize(
    ("asked", "own", "context", "tokens"),
    [(10, 5, 100, 10), (None, 5, 100, 5), (None, 0, 100, 100), (500, 0, 100, 100), (None, 0, 0, 1_000_000)],
)
def test_the_output_is_the_callers_limit_else_the_models_else_the_context(
    asked: int | None, own: int, context: int, tokens: int
) -> None:
    model = model_of({"output_token": "1"}, max_output_tokens=own, context_tokens=context)
    assert output_limit(model, CompletionInput(prompt="", max_tokens=asked)) == tokens


def test_every_choice_is_counted() -> None:
    model = model_of({"output_token": "1"}, context_tokens=100)
    assert ceiling(model, CompletionInput(prompt="", n=3, max_tokens=10)).nanos == parse_usd("30")


def test_max_completion_tokens_is_a_limit_too() -> None:
    model = model_of({"output_token": "1"}, context_tokens=100)
    value = ChatInput(messages=[Message(role="user", content="")], max_completion_tokens=7)
    assert ceiling(model, value).units.output_tokens == 7


def test_names_parts_tools_and_schemas_are_counted() -> None:
    plain = chat_tokens(ChatInput(messages=[Message(role="user", content="ab")]), 0)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = Tool(function=Function(name="weather", parameters=schema))
    messages = [Message(role="user", name="ann", content=[TextPart(text="a"), TextPart(text="b")])]
    full = ChatInput(
        messages=messages, tools=[tool], response_format=JsonSchemaFormat(json_schema=JsonSchema(schema=schema))
    )
    printed = json.dumps(msgspec.to_builtins(tool), indent=4)
    assert chat_tokens(full, 0) >= plain + len("ann") + len(printed) + len(msgspec.json.encode(schema))


def test_each_text_to_embed_is_capped_by_itself() -> None:
    model = model_of({"input_token": "1"}, tasks=("embedding",), context_tokens=10)
    assert ceiling(model, EmbeddingInput(input=["abc", "x" * 100])).units.input_tokens == 13
    assert ceiling(model, EmbeddingInput(input="abc")).units.input_tokens == 3


def test_characters_are_exact() -> None:
    model = model_of({"character": "0.000015"}, tasks=("text-to-speech",))
    assert ceiling(model, SpeechInput(input="grüß dich")).nanos == 9 * parse_usd("0.000015")


def test_slower_speech_is_bounded_by_more_seconds() -> None:
    text = "Some words."
    assert speech_ms(SpeechInput(input=text, speed=0.5)) >= 2 * speech_ms(SpeechInput(input=text))
    assert speech_ms(SpeechInput(input=text, speed=4)) == speech_ms(SpeechInput(input=text))


def test_lines_add_up_to_the_ceiling() -> None:
    model = model_of({"input_token": "0.1", "output_token": "0.2"}, context_tokens=100)
    quote = ceiling(model, said("hello"))
    assert [(line.unit, line.quantity, line.amount_usd) for line in quote.lines] == [
        ("input_token", "5", "0.5"),
        ("output_token", "10", "2"),
    ]
    assert quote.nanos == parse_usd("2.5")


def test_a_model_without_a_price_has_no_ceiling() -> None:
    with pytest.raises(ValueError, match="no price"):
        ceiling(Model(name="m", tasks=("chat",), description="", routes=()), said("hello"))


prices = st.dictionaries(st.sampled_from(TOKEN_UNITS), st.integers(0, 10**9).map(lambda nanos: f"{nanos}e-12"))


@st.composite
def measured_chats(draw: st.DrawFn) -> tuple[Model, ChatInput, Units]:
    """A model, an input, and units that an engine may measure within the limits of both."""
    model = model_of(
        draw(prices),
        context_tokens=draw(st.integers(1, 500)),
        max_output_tokens=draw(st.integers(0, 100)),
        prompt_overhead_tokens=draw(st.integers(0, 8)),
    )
    texts = draw(st.lists(st.text(max_size=40), min_size=1, max_size=4))
    value = ChatInput(
        messages=[Message(role="user", content=text) for text in texts],
        n=draw(st.none() | st.integers(1, 4)),
        max_tokens=draw(st.none() | st.integers(1, 600)),
    )
    prompt = sum(len(text.encode()) for text in texts) + model.prompt_overhead_tokens * (len(texts) + 1)
    inputs = draw(st.integers(0, min(prompt, model.context_tokens)))
    outputs = draw(st.integers(0, (value.n or 1) * output_limit(model, value)))
    return model, value, Units(inputs, draw(st.integers(0, inputs)), outputs, draw(st.integers(0, outputs)))


@settings(max_examples=500)
@given(measured_chats(), st.sampled_from(("succeeded", "failed", "cancelled", "expired")), st.booleans())
def test_no_charge_is_above_the_ceiling(case: tuple[Model, ChatInput, Units], outcome: Any, began: bool) -> None:
    """Whatever an engine measures within the limits, and however dear cached or reasoning tokens are."""
    model, value, measured = case
    assert model.price is not None
    policy = OutcomePolicy(failed="produced")
    assert charge_nanos(model.price, measured, outcome, policy, began) <= ceiling(model, value).nanos


def test_a_quote_of_a_small_chat_is_cheap() -> None:
    """Under 8 microseconds where the machine is quiet (measured: 2.5 to 3); the test allows a noisy hour."""
    model = model_of({"input_token": "1", "cached_input_token": "0.5", "output_token": "2"}, context_tokens=2048)
    value = said("What is the capital of France?")
    assert min(timeit.repeat(lambda: ceiling(model, value), number=200, repeat=50)) / 200 < 25e-6
