"""The constraints of an answer, and what makes them too costly.

Grammars come from callers, so they are hostile until shown otherwise. The engine's grammar library
(llguidance) bounds the work of each step, but not the size of what it builds: a list of `minItems:
1000000` took it 86 s and 10 GB. So everything that is repeated by count is bounded here, before vLLM
sees it.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from gateway.contract.inputs.text import ChoiceFormat, JsonObjectFormat, JsonSchemaFormat, RegexFormat, ResponseFormat
from workers.engine import RefusedInput
from workers.engines.vllm.shapes import Constraint

MAX_SCHEMA_BYTES = 64 * 1024
MAX_DEPTH = 32
MAX_COUNT = 1000
"""The most that `minItems`, `maxItems`, `minProperties` and `maxProperties` may say."""
MAX_LENGTH = 1_000_000
"""The most that `minLength` and `maxLength` may say."""
MAX_REGEX_SIZE = 2500
"""The most pieces of a regular expression, each counted as often as it may be repeated."""

_COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties")
_LENGTHS = ("minLength", "maxLength")


def constraint_of(wanted: ResponseFormat | None) -> Constraint | None:
    """Translate a response format. Raises RefusedInput for one that is too costly."""
    match wanted:
        case JsonObjectFormat():
            return Constraint(kind="json_object")
        case JsonSchemaFormat(json_schema=described):
            return schema_constraint(described.schema, "response_format.json_schema.schema")
        case RegexFormat(regex=pattern):
            check_regex(pattern, "response_format.regex")
            return Constraint(kind="regex", value=pattern)
        case ChoiceFormat(choices=choices):
            return Constraint(kind="choice", value=choices)
    return None


def schema_constraint(schema: dict[str, Any], param: str) -> Constraint:
    """Make the constraint of a JSON schema. Raises RefusedInput for one that is too costly."""
    for node in nodes_of(schema, param):
        _check_node(node, param)
    text = msgspec.json.encode(schema).decode()
    if len(text) > MAX_SCHEMA_BYTES:
        raise RefusedInput(f"{param} is larger than {MAX_SCHEMA_BYTES // 1024} KiB.")
    return Constraint(kind="json", value=text)


def nodes_of(schema: dict[str, Any], param: str) -> Iterator[dict[str, Any]]:
    """Walk all objects of a schema, without recursion: it may be deep. Raises RefusedInput below MAX_DEPTH."""
    level: list[Any] = [schema]
    for _ in range(MAX_DEPTH):
        yield from (node for node in level if isinstance(node, dict))
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise RefusedInput(f"{param} is nested deeper than {MAX_DEPTH} levels.")


def _check_node(node: dict[str, Any], param: str) -> None:
    for names, most in ((_COUNTS, MAX_COUNT), (_LENGTHS, MAX_LENGTH)):
        for name in names:
            value = node.get(name)
            if isinstance(value, int | float) and value > most:
                raise RefusedInput(f"{param} has {name} {value}; at most {most} is accepted.")
    reference = node.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#"):
        raise RefusedInput(f"{param} refers to {reference!r}; only references inside the schema are followed.")
    if isinstance(pattern := node.get("pattern"), str):
        check_regex(pattern, f"{param} pattern")
    if isinstance(patterns := node.get("patternProperties"), dict):
        for each in patterns:
            check_regex(each, f"{param} patternProperties")


def check_regex(pattern: str, param: str) -> None:
    """Refuse a regular expression that unfolds to more than MAX_REGEX_SIZE pieces. Syntax is left to the engine."""
    if _regex_size(pattern) > MAX_REGEX_SIZE:
        raise RefusedInput(f"{param} is too large: repeated as often as it says, it has over {MAX_REGEX_SIZE} pieces.")


def _regex_size(pattern: str) -> int:
    """Count the pieces of a pattern, each as often as its counted repetitions may repeat it."""
    sizes = [0]  # of the groups that are open
    last = 0  # of the piece that a repetition would repeat
    at = 0
    while at < len(pattern) and sizes[-1] <= MAX_REGEX_SIZE:
        sign = pattern[at]
        at += 1
        if sign in "*+?":
            continue
        if sign == "(":
            sizes.append(0)
            last = 0
            continue
        if sign == "{":
            end = pattern.find("}", at) + 1 or len(pattern)
            most = max((int(count[:9]) for count in re.findall(r"\d+", pattern[at:end])), default=1)
            sizes[-1] += last * max(most - 1, 0)
            last *= max(most, 1)
            at = end
            continue
        if sign == ")" and len(sizes) > 1:
            last = sizes.pop() + 1
        else:
            at = _skip(pattern, sign, at)
            last = 1
        sizes[-1] += last
    return sum(sizes)


def _skip(pattern: str, sign: str, at: int) -> int:
    """Step over the rest of an escape or of a class in brackets."""
    if sign == "\\":
        named = pattern[at : at + 1] in {"p", "P", "x", "u", "U"} and pattern[at + 1 : at + 2] == "{"
        return (pattern.find("}", at) + 1 or len(pattern)) if named else at + 1
    if sign != "[":
        return at
    at += pattern.startswith("^", at)
    at += pattern.startswith("]", at)
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
