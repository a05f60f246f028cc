"""Tools: how a tool choice constrains the answer, and how the calls are read out of it."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gateway.contract.inputs import ChatInput
from gateway.contract.inputs.text import NamedTool, Tool
from workers.engine import RefusedInput
from workers.engines.vllm.formats import constraint_of, nodes_of, schema_constraint
from workers.engines.vllm.scanner import CallScanner
from workers.engines.vllm.shapes import Constraint, Piece, Reader

_ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}


class PlainReader:
    """All is text."""

    called = False

    def read(self, text: str, ids: Sequence[int], *, finished: bool) -> Piece:
        """Pass the text on."""
        return Piece(text=text)


class NamedReader:
    """All is the arguments of one tool, which the caller has named."""

    def __init__(self, name: str) -> None:
        self.called = False
        self._name = name

    def read(self, text: str, ids: Sequence[int], *, finished: bool) -> Piece:
        """Pass the text on as arguments."""
        if not text:
            return Piece()
        name = None if self.called else self._name
        self.called = True
        return Piece(calls=[(0, name, text)])


class RequiredReader:
    """All is a list of calls."""

    def __init__(self) -> None:
        self.called = False
        self._scanner = CallScanner()

    def read(self, text: str, ids: Sequence[int], *, finished: bool) -> Piece:
        """Follow the list."""
        calls = self._scanner.feed(text)
        self.called |= bool(calls)
        return Piece(calls=calls)


class ToolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a chat's tools mean for its run."""

    shown: list[Tool] = []
    """The tools that the chat template gets."""
    constraint: Constraint | None = None
    reader: Callable[[], Reader] = PlainReader
    parsed: bool = False
    """Whether calls are to be found in free text, by the model's own parser."""


def plan_tools(given: ChatInput, *, can_parse: bool) -> ToolPlan:
    """Work out what tools and tool choice ask for. Raises RefusedInput when they contradict each other."""
    tools = given.tools or []
    choice = given.tool_choice
    wanted = constraint_of(given.response_format)
    if not tools:
        if choice not in (None, "none", "auto"):
            raise RefusedInput("tool_choice asks for a call, but tools is empty.")
        return ToolPlan(constraint=wanted)
    for tool in tools:
        deque(nodes_of(tool.function.parameters or {}, f"tools {tool.function.name}"), maxlen=0)
    if choice == "none":
        return ToolPlan(constraint=wanted)
    if isinstance(choice, NamedTool):
        name = choice.function.name
        chosen = next((tool for tool in tools if tool.function.name == name), None)
        if chosen is None:
            raise RefusedInput(f"tool_choice names {name!r}, which is not among tools.")
        schema = chosen.function.parameters or _ANYTHING
        return ToolPlan(
            shown=tools, constraint=schema_constraint(schema, f"tools {name}"), reader=lambda: NamedReader(name)
        )
    if choice == "required":
        schema = _calls_schema(tools, single=given.parallel_tool_calls is False)
        return ToolPlan(shown=tools, constraint=schema_constraint(schema, "tools"), reader=RequiredReader)
    return ToolPlan(shown=tools, constraint=wanted, parsed=can_parse and wanted is None)


def _calls_schema(tools: Sequence[Tool], *, single: bool) -> dict[str, Any]:
    """Make the schema of a list of calls. Definitions move to its root, where their references point."""
    definitions: dict[str, Any] = {}
    items = []
    for tool in tools:
        parameters = dict(tool.function.parameters or _ANYTHING)
        for name, definition in (parameters.pop("$defs", None) or {}).items():
            if definitions.setdefault(name, definition) != definition:
                raise RefusedInput(f"two tools define {name!r} differently; give one of them another name.")
        named = {"name": {"const": tool.function.name}, "parameters": parameters}
        items.append({"type": "object", "properties": named, "required": list(named), "additionalProperties": False})
    schema: dict[str, Any] = {"type": "array", "minItems": 1, "items": {"anyOf": items}}
    if single:
        schema["maxItems"] = 1
    if definitions:
        schema["$defs"] = definitions
    return schema
