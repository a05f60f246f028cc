"""What the engine `vllm` makes of formats and tools before vLLM sees them. Needs no vLLM."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.contract.inputs import ChatInput
from gateway.contract.inputs.text import JsonSchema, JsonSchemaFormat, ResponseFormat
from workers.engine import RefusedInput
from workers.engines.vllm.formats import constraint_of
from workers.engines.vllm.scanner import CallScanner
from workers.engines.vllm.tools import plan_tools

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
calls = st.lists(st.tuples(st.text(min_size=1), st.dictionaries(st.text(), values, max_size=3)), min_size=1, max_size=4)


@given(calls, st.integers(1, 7), st.booleans())
def test_calls_are_read_out_of_their_list_however_it_is_cut(
    wanted: list[tuple[str, dict[str, Any]]], step: int, spaced: bool
) -> None:
    listed = [{"name": name, "parameters": parameters} for name, parameters in wanted]
    text = json.dumps(listed, indent=1) if spaced else json.dumps(listed, separators=(",", ":"), ensure_ascii=False)
    scanner = CallScanner()
    found = [piece for at in range(0, len(text), step) for piece in scanner.feed(text[at : at + step])]
    assert [name for _, name, _ in found if name is not None] == [name for name, _ in wanted]
    for index, (_, parameters) in enumerate(wanted):
        assert json.loads("".join(part for call, _, part in found if call == index)) == parameters


def format_of(value: dict[str, Any]) -> Any:
    return constraint_of(msgspec.convert(value, ResponseFormat))


def schema_of(schema: dict[str, Any]) -> Any:
    return format_of({"type": "json_schema", "json_schema": {"schema": schema}})


@pytest.mark.parametrize(
    "pattern",
    [
        "a{2501}",
        "(a{50}){51}",
        "((a{1,100}){1,100}){1,100}",
        "(ab|cd){1,999}(ef){700,}",
        "x+{2600}",
        "(?x) a{ 1 , 2600 # many \n }",
        "[)(]{2600}",
        "\\({2600}",
        "a{99999999999999999999}",
    ],
)
def test_a_regex_that_unfolds_too_far_is_refused(pattern: str) -> None:
    with pytest.raises(RefusedInput, match="too large"):
        format_of({"type": "regex", "regex": pattern})
    with pytest.raises(RefusedInput, match="too large"):
        schema_of({"properties": {"a": {"items": [{"pattern": pattern}]}}})


@pytest.mark.parametrize(
    "pattern",
    [
        "[a-z]{1,1000}",
        "(a|b)*c+?",
        "\\d{4}-\\d{2}-\\d{2}",
        "\\p{L}{20}",
        "\\x{10FFFF}",
        "a" * 2048,
        "[{]9[}]{2}",
        "",
        "(",
        ")",
    ],
)
def test_an_ordinary_regex_is_passed_on(pattern: str) -> None:
    assert format_of({"type": "regex", "regex": pattern or "x"}).value == (pattern or "x")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"minItems": 1001}, "minItems"),
        ({"items": {"maxItems": 1e9}}, "maxItems"),
        ({"$defs": {"a": {"maxProperties": 5000}}}, "maxProperties"),
        ({"minLength": 10**7}, "minLength"),
        ({"$ref": "http://example.com/schema"}, "only references inside"),
        ({"$ref": "file:///etc/passwd"}, "only references inside"),
        ({"enum": ["x" * 100] * 1000}, "64 KiB"),
    ],
)
def test_a_schema_that_costs_too_much_is_refused_by_name(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedInput, match=says):
        schema_of(schema)


def chat(**given: Any) -> ChatInput:
    return msgspec.convert({"messages": [{"role": "user", "content": "hm"}]} | given, ChatInput)


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"} | parameters}}


def test_schemas_nested_too_deep_are_refused_wherever_they_stand() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"items": deep}
    wanted = JsonSchemaFormat(json_schema=JsonSchema(schema=deep))
    with pytest.raises(RefusedInput, match="nested deeper"):
        constraint_of(wanted)
    for choice in ("auto", "required", "none"):
        with pytest.raises(RefusedInput, match="nested deeper"):
            plan_tools(chat(tools=[tool("a", properties=deep)], tool_choice=choice), can_parse=True)


def test_definitions_of_tools_move_to_where_their_references_point() -> None:
    place = {"$defs": {"place": {"enum": ["Rome"]}}, "properties": {"at": {"$ref": "#/$defs/place"}}}
    plan = plan_tools(chat(tools=[tool("a", **place), tool("b", **place)], tool_choice="required"), can_parse=True)
    assert plan.constraint is not None
    schema = json.loads(str(plan.constraint.value))
    assert schema["$defs"] == place["$defs"]
    other = tool("c", **{"$defs": {"place": {"enum": ["Oslo"]}}})
    with pytest.raises(RefusedInput, match="differently"):
        plan_tools(chat(tools=[tool("a", **place), other], tool_choice="required"), can_parse=True)


def test_a_format_goes_before_calls_that_nobody_forced() -> None:
    given = chat(tools=[tool("a")], response_format={"type": "json_object"})
    plan = plan_tools(given, can_parse=True)
    assert plan.constraint is not None
    assert not plan.parsed
