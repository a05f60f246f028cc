"""Inputs held against a model's parameters, and combinations of fields."""

import timeit
from typing import Any

import msgspec
import pytest

from gateway.catalog.model import Model, Parameter
from gateway.catalog.validate import check_input
from gateway.contract.inputs import ChatInput, CompletionInput, EmbeddingInput, SpeechInput, TalkingHeadInput
from gateway.contract.inputs.text import (
    ChoiceFormat,
    Function,
    JsonObjectFormat,
    Message,
    NamedFunction,
    NamedTool,
    Tool,
)
from gateway.errors import InvalidRequest

TOOL = Tool(function=Function(name="weather"))


def model_of(parameters: dict[str, Parameter] | None = None, **fields: Any) -> Model:
    return Model(
        **{
            "name": "m",
            "tasks": ("chat", "completion"),
            "description": "A model.",
            "routes": (),
            "context_tokens": 100,
            "parameters": parameters or {},
            **fields,
        }
    )


def chat(**fields: Any) -> ChatInput:
    return ChatInput(messages=[Message(role="user", content="hello")], **fields)


def test_what_is_given_stays_and_what_is_not_takes_the_default() -> None:
    model = model_of(
        {"temperature": Parameter(type="number", default=0.5), "stop": Parameter(type="array", default=["\n"])}
    )
    assert check_input(model, chat()).temperature == 0.5
    assert check_input(model, chat()).stop == ["\n"]
    assert check_input(model, chat(temperature=0.0)).temperature == 0.0


def test_a_default_becomes_what_the_field_holds() -> None:
    model = model_of({"response_format": Parameter(type="object", default={"type": "json_object"})})
    assert check_input(model, chat()).response_format == JsonObjectFormat()


def test_an_input_without_changes_is_the_same_object() -> None:
    value = chat()
    assert check_input(model_of(), value) is value


@pytest.mark.parametrize(
    ("parameters", "fields", "param", "words"),
    [
        ({"temperature": Parameter(type="number", maximum=1)}, {"temperature": 1.5}, "temperature", "at most 1 "),
        ({"temperature": Parameter(type="number", minimum=0.5)}, {"temperature": 0.0}, "temperature", "at least 0.5"),
        ({"seed": Parameter(type="integer", choices=(1, 2))}, {"seed": 3}, "seed", "one of: 1, 2"),
        ({"stop": Parameter(type="array", maximum=1)}, {"stop": ["a", "b"]}, "stop", "at most 1 items"),
        ({"tools": Parameter(type="array", maximum=0)}, {"tools": [TOOL]}, "tools", "takes no tools"),
        (
            {"response_format": Parameter(type="object", choices=("text", "json_object"))},
            {"response_format": ChoiceFormat(choices=["a"])},
            "response_format",
            "one of: text, json_object",
        ),
        ({"max_tokens": Parameter(type="integer", maximum=5)}, {"max_tokens": 6}, "max_tokens", "at most 5"),
        (
            {"max_tokens": Parameter(type="integer", maximum=5)},
            {"max_completion_tokens": 6},
            "max_completion_tokens",
            "at most 5",
        ),
        ({}, {"max_tokens": 101}, "max_tokens", "at most 100"),
        ({}, {"max_completion_tokens": 101}, "max_completion_tokens", "at most 100"),
        ({}, {"max_tokens": 5, "max_completion_tokens": 6}, "max_completion_tokens", "differ"),
        ({}, {"n": 3, "max_tokens": 40}, "n", "3 choices of up to 40 tokens"),
        ({}, {"n": 3, "max_completion_tokens": 40}, "n", "set max_completion_tokens to at most 33"),
        ({}, {"min_tokens": 11, "max_tokens": 10}, "min_tokens", "at most 10"),
        ({}, {"top_logprobs": 2}, "top_logprobs", "needs logprobs"),
        ({}, {"tool_choice": "required"}, "tool_choice", "there are no tools"),
        (
            {},
            {"tools": [TOOL], "tool_choice": NamedTool(function=NamedFunction(name="other"))},
            "tool_choice",
            "not among tools",
        ),
    ],
)
def test_a_refusal_names_the_field_and_says_what_to_do(
    parameters: dict[str, Parameter], fields: dict[str, Any], param: str, words: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_input(model_of(parameters), chat(**fields))
    assert refusal.value.param == param
    assert words in refusal.value.message


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 4, "max_tokens": 25},
        {"max_tokens": 100},
        {"max_tokens": 9, "max_completion_tokens": 9},
        {"tools": [TOOL], "tool_choice": "required"},
        {"tool_choice": "none"},
        {"logprobs": True, "top_logprobs": 3},
    ],
)
def test_what_fits_together_passes(fields: dict[str, Any]) -> None:
    assert check_input(model_of(), chat(**fields)) == chat(**fields)


def test_the_models_own_limit_is_put_in_where_the_caller_names_none() -> None:
    """So that the engine stops where the quote ends."""
    model = model_of(max_output_tokens=20)
    assert check_input(model, chat()).max_tokens == 20
    assert check_input(model, CompletionInput(prompt="x")).max_tokens == 20
    assert check_input(model, chat(max_tokens=30)).max_tokens == 30
    assert check_input(model, chat(max_completion_tokens=30)).max_tokens is None


@pytest.mark.parametrize(("own", "n", "limit"), [(0, 2, 50), (40, 2, 40), (40, 4, 25), (0, 1, None)])
def test_choices_without_a_limit_share_the_context(own: int, n: int, limit: int | None) -> None:
    """Nobody is refused for a limit he did not name."""
    assert check_input(model_of(max_output_tokens=own), chat(n=n)).max_tokens == limit


def test_a_default_limit_is_shared_among_choices_too() -> None:
    model = model_of({"max_tokens": Parameter(type="integer", default=80)})
    assert check_input(model, chat(n=4)).max_tokens == 25
    either = model_of({"max_completion_tokens": Parameter(type="integer", default=80)})
    assert check_input(either, chat(n=4)).max_tokens == 25


def test_a_default_limit_never_meets_the_callers_own_by_another_name() -> None:
    model = model_of({"max_tokens": Parameter(type="integer", default=10)})
    value = check_input(model, chat(max_completion_tokens=7))
    assert (value.max_tokens, value.max_completion_tokens) == (None, 7)


def test_parameters_of_one_task_leave_the_others_alone() -> None:
    model = model_of(
        {"logprobs": Parameter(type="boolean", default=True), "echo": Parameter(type="boolean")}, tasks=("chat",)
    )
    assert check_input(model, chat()).logprobs is True


def test_one_text_counts_as_a_list_of_one() -> None:
    model = model_of({"stop": Parameter(type="array", maximum=1)})
    assert check_input(model, chat(stop="end")).stop == "end"


def test_speech_is_held_against_its_limits() -> None:
    model = model_of(
        {
            "input": Parameter(type="string", maximum=5),
            "voice": Parameter(type="string", default="en-us", choices=("en-us", "de")),
        },
        tasks=("text-to-speech",),
    )
    assert check_input(model, SpeechInput(input="hello")).voice == "en-us"
    with pytest.raises(InvalidRequest, match="at most 5 characters"):
        check_input(model, SpeechInput(input="hello!"))
    with pytest.raises(InvalidRequest, match="one of: en-us, de"):
        check_input(model, SpeechInput(input="hello", voice="fr"))


def test_embedding_sizes_may_be_a_choice() -> None:
    model = model_of({"dimensions": Parameter(type="integer", choices=(16, 32))}, tasks=("embedding",))
    assert check_input(model, EmbeddingInput(input="a", dimensions=16)).dimensions == 16
    with pytest.raises(InvalidRequest, match="one of: 16, 32"):
        check_input(model, EmbeddingInput(input="a", dimensions=17))


def test_an_input_with_defaults_put_in_can_still_be_sent() -> None:
    model = model_of({"temperature": Parameter(type="number", default=1)}, max_output_tokens=5)
    assert msgspec.json.decode(msgspec.json.encode(check_input(model, chat())), type=ChatInput).max_tokens == 5


def test_checking_is_cheap() -> None:
    """Under 3 microseconds where the machine is quiet (measured: 0.4 to 0.9); the test allows a noisy hour."""
    model = model_of({"temperature": Parameter(type="number", default=0.7, maximum=2), "n": Parameter(type="integer")})
    value = chat()
    assert min(timeit.repeat(lambda: check_input(model, value), number=200, repeat=50)) / 200 < 12e-6


@pytest.mark.parametrize("given", [{}, {"text": "Hello.", "audio": "file_1"}])
def test_a_talking_head_says_either_a_text_or_a_sound(given: dict[str, Any]) -> None:
    model = model_of(tasks=("talking-head",))
    with pytest.raises(InvalidRequest, match="either text or audio") as caught:
        check_input(model, TalkingHeadInput(image="file_2", **given))
    assert caught.value.param == "text"
    for name in ("text", "audio"):
        check_input(model, TalkingHeadInput(image="file_2", **{name: "x"}))
