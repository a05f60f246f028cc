"""Reading the fields of a mapping by name and type, noting every problem and going on."""

import difflib
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from gateway.catalog.document import Mapping, Node, Scalar, Sequence, builtins, kind_of
from gateway.catalog.problems import Report

Word = TypeVar("Word", bound=str)

MOST_TEXT = 2_000
_INTEGER = re.compile(r"[-+]?[0-9]{1,15}")
_NUMBER = re.compile(r"[-+]?[0-9]{1,15}(\.[0-9]{1,15})?([eE][-+]?[0-9]{1,2})?")


class Fields:
    """The fields of one mapping. What is missing or wrong is reported once and answered with the default."""

    def __init__(self, node: Mapping, path: str, report: Report, line: int) -> None:
        self._entries = node.entries
        self._report = report
        self.line = line
        self.path = path

    @property
    def problems(self) -> int:
        """How many problems there are by now, of the whole catalog."""
        return len(self._report.problems)

    def known(self, names: tuple[str, ...]) -> None:
        """Report every field that is none of `names`."""
        for name, (key, _) in self._entries.items():
            if name in names:
                continue
            near = difflib.get_close_matches(name, names, 1)
            hint = f"`{near[0]}`" if near else f"one of {', '.join(names)}"
            self._report.add(key.line, self.at(name) if name.isprintable() else self.path, hint, "an unknown field")

    def at(self, name: str) -> str:
        """Give the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def node(self, name: str) -> Node | None:
        """Give a field as it stands; None where it is missing, or there is nothing behind its colon."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        node = entry[1]
        empty = isinstance(node, Scalar) and node.plain and node.text in ("", "~", "null")
        return None if empty else node

    def line_of(self, name: str) -> int:
        """Give the line of a field, or of the mapping where the field is missing."""
        entry = self._entries.get(name)
        return entry[0].line if entry else self.line

    def wrong(self, name: str, expected: str, found: str | None = None) -> None:
        """Report a problem with a field."""
        node = self.node(name)
        found = found or (kind_of(node) if node is not None else "nothing")
        self._report.add(self.line_of(name), self.at(name), expected, found)

    def wrong_here(self, expected: str, found: str) -> None:
        """Report a problem with the mapping itself."""
        self._report.add(self.line, self.path, expected, found)

    def wrong_at(self, node: Node, path: str, expected: str, found: str) -> None:
        """Report a problem with a value below a field."""
        self._report.add(node.line, path, expected, found)

    def text(self, name: str, default: str | None = None) -> str:
        """Read printable text. Without a default it must be there and not be empty."""
        node = self.node(name)
        if node is None and default is not None:
            return default
        if not isinstance(node, Scalar) or (default is None and not node.text.strip()):
            self.wrong(name, "text")
        elif not is_clean(node.text):
            self.wrong(name, f"at most {MOST_TEXT} characters and no control characters")
        else:
            return node.text.strip()
        return default or ""

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Read a whole number between `least` and `most`."""
        node = self.node(name)
        if node is None:
            return default
        if isinstance(node, Scalar) and _INTEGER.fullmatch(node.text) and least <= int(node.text) <= most:
            return int(node.text)
        self.wrong(name, f"a whole number from {least} to {most}")
        return default

    def number(self, name: str) -> float | None:
        """Read a number, which is never money."""
        node = self.node(name)
        if node is None:
            return None
        if isinstance(node, Scalar) and _NUMBER.fullmatch(node.text):
            value = float(node.text)
            return int(value) if value.is_integer() else value
        self.wrong(name, "a number")
        return None

    def flag(self, name: str) -> bool:
        """Read true or false; false where it is missing."""
        node = self.node(name)
        if node is not None and not (isinstance(node, Scalar) and node.text in ("true", "false")):
            self.wrong(name, "true or false")
        return isinstance(node, Scalar) and node.text == "true"

    def word(self, name: str, words: tuple[Word, ...], default: Word | None = None) -> Word | None:
        """Read one of `words`."""
        node = self.node(name)
        if node is None and default is not None:
            return default
        text = node.text if isinstance(node, Scalar) else None
        found = next((word for word in words if word == text), None)
        if found is None:
            self.wrong(name, f"one of {', '.join(words)}")
        return found or default

    def words(self, name: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """Read a list of some of `words`, at least one, each once."""
        found: list[Word] = []
        for node, path in self.items(name, f"a list of some of {', '.join(words)}"):
            text = node.text if isinstance(node, Scalar) else None
            word = next((word for word in words if word == text), None)
            if word is None or word in found:
                expected = "each task once" if word else f"one of {', '.join(words)}"
                self._report.add(node.line, path, expected, kind_of(node))
            else:
                found.append(word)
        if not found and self.node(name) is None:
            self.wrong(name, f"a list of some of {', '.join(words)}")
        return tuple(found)

    def items(self, name: str, expected: str) -> Iterator[tuple[Node, str]]:
        """Yield the items of a list with their paths; nothing where it is missing."""
        node = self.node(name)
        if node is None:
            return
        if not isinstance(node, Sequence):
            self.wrong(name, expected)
            return
        for number, item in enumerate(node.items):
            yield item, f"{self.at(name)}[{number}]"

    def plain(self, name: str) -> Any:
        """Read any value as YAML 1.2 means it; None where it is missing."""
        node = self.node(name)
        return None if node is None else builtins(node)

    def texts(self, name: str) -> "Iterator[tuple[str, str, Fields]]":
        """Yield the entries of a mapping of texts: name, text, and the fields they stand in."""
        group = self.group(name)
        for key in group._entries if group else ():
            assert group is not None
            yield key, group.text(key), group

    def group(self, name: str) -> "Fields | None":
        """Read a mapping; None where it is missing."""
        node = self.node(name)
        return None if node is None else self.of(node, self.at(name), self.line_of(name))

    def of(self, node: Node, path: str, line: int = 0) -> "Fields | None":
        """Take a node as a mapping, whose key stands on `line`; reports what is none."""
        if isinstance(node, Mapping):
            return Fields(node, path, self._report, line or node.line)
        self._report.add(node.line, path, "a mapping", kind_of(node))
        return None

    def named(self, name: str) -> "Iterator[tuple[str, int, Fields]]":
        """Yield the entries of a mapping of mappings: name, line, fields."""
        group = self.group(name)
        if group is not None:
            yield from group.entries()

    def entries(self) -> "Iterator[tuple[str, int, Fields]]":
        """Yield all fields as mappings: name, line, fields."""
        for key, (scalar, node) in self._entries.items():
            path = self.at(key if key.isprintable() else ascii(key))
            fields = self.of(node, path, scalar.line)
            if fields is not None:
                yield key, scalar.line, fields


def is_clean(text: str) -> bool:
    """Say whether a text fits a line of a page: not too long, and no control characters but line ends."""
    return len(text) <= MOST_TEXT and text.replace("\n", " ").isprintable()
