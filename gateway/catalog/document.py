"""A YAML text as a tree that knows its lines (`parse.py` makes it).

Scalars stay text: whoever reads a field decides what it means, and decimals never pass through a float.
"""

import re
from typing import Any

import msgspec

from gateway.catalog.problems import shown

_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class Scalar(msgspec.Struct, frozen=True):
    """A scalar as it stands in the file. `plain` is false where it was quoted."""

    text: str
    plain: bool
    line: int
    size: int = 1
    height: int = 0


class Sequence(msgspec.Struct):
    """A list."""

    items: "list[Node]"
    line: int
    size: int = 1
    height: int = 1


class Mapping(msgspec.Struct):
    """A mapping, by the text of its keys; each stands there once."""

    entries: "dict[str, tuple[Scalar, Node]]"
    line: int
    size: int = 1
    height: int = 1


Node = Scalar | Sequence | Mapping


def builtins(node: Node) -> Any:
    """Read a node as plain values by YAML 1.2's core schema: null, true, false, numbers, and text."""
    if isinstance(node, Sequence):
        return [builtins(item) for item in node.items]
    if isinstance(node, Mapping):
        return {key: builtins(value) for key, (_, value) in node.entries.items()}
    return _core(node)


def kind_of(node: Node) -> str:
    """Name a node in an error: its text, or what it is."""
    if isinstance(node, Scalar):
        return shown(node.text) if node.text or not node.plain else "nothing"
    return "a list" if isinstance(node, Sequence) else "a mapping"


def _core(node: Scalar) -> str | int | float | bool | None:
    text = node.text
    if not node.plain:
        return text
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and len(text) <= 20:
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text
