"""Reads a YAML text under limits, by the parser's events: nothing recurses, and no YAML tag makes an object."""

from collections.abc import Iterator

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from gateway.catalog.document import Mapping, Node, Scalar, Sequence, kind_of
from gateway.catalog.problems import CatalogError, Problem, Report, shown

MOST_BYTES = 4 * 1024 * 1024
MOST_DEPTH = 20
MOST_NODES = 200_000
"""With every alias counted as often as what it stands for."""


def parse(data: bytes, file: str) -> Node:
    """Read a YAML document. Raises CatalogError with every duplicate key, or with what makes it unreadable."""
    if len(data) > MOST_BYTES:
        raise _unreadable(file, 0, f"at most {MOST_BYTES} bytes", f"{len(data)}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _unreadable(file, line, "UTF-8", f"byte 0x{data[error.start]:02x}") from None
    report = Report()
    try:
        node = _Builder(report, file).build(YAML(typ="safe", pure=True).parse(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _unreadable(
            file, mark.line + 1 if mark else 0, "YAML", (error.problem or "something else").removeprefix("found ")
        ) from None
    except YAMLError as error:
        raise _unreadable(file, 0, "YAML", str(error).splitlines()[0]) from None
    if report.problems:
        raise CatalogError(file, report.problems)
    return node


def _unreadable(file: str, line: int, expected: str, found: str) -> CatalogError:
    return CatalogError(file, [Problem(line=line, field="", expected=expected, found=found)])


class _Builder:
    """Builds the tree from events, with a stack of what is still open."""

    def __init__(self, report: Report, file: str) -> None:
        self._report = report
        self._file = file
        self._open: list[tuple[Sequence | Mapping, str | None]] = []
        self._keys: list[Scalar | None] = []
        self._anchors: dict[str, Node] = {}
        self._root: Node | None = None
        self._documents = 0

    def build(self, events: Iterator[Event]) -> Node:
        for event in events:
            self._take(event, event.start_mark.line + 1)
        return self._root if self._root is not None else Scalar("", True, 1)

    def _take(self, event: Event, line: int) -> None:
        if isinstance(event, ScalarEvent | SequenceStartEvent | MappingStartEvent) and event.tag is not None:
            raise _unreadable(self._file, line, "no YAML tags", shown(event.tag))
        if isinstance(event, ScalarEvent):
            self._put(Scalar(event.value, event.style is None, line), event.anchor)
        elif isinstance(event, SequenceStartEvent):
            self._begin(Sequence([], line), event.anchor)
        elif isinstance(event, MappingStartEvent):
            self._begin(Mapping({}, line), event.anchor)
        elif isinstance(event, SequenceEndEvent | MappingEndEvent):
            node, anchor = self._open.pop()
            self._keys.pop()
            self._put(node, anchor)
        elif isinstance(event, AliasEvent):
            self._alias(event.anchor, line)
        elif isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _unreadable(self._file, line, "one YAML document", "a second one")

    def _begin(self, node: Sequence | Mapping, anchor: str | None) -> None:
        if len(self._open) >= MOST_DEPTH:
            raise _unreadable(self._file, node.line, f"at most {MOST_DEPTH} levels", "more")
        if self._keys and self._keys[-1] is None and isinstance(self._open[-1][0], Mapping):
            raise _unreadable(self._file, node.line, "text as a key", kind_of(node))
        self._open.append((node, anchor))
        self._keys.append(None)

    def _alias(self, anchor: str, line: int) -> None:
        node = self._anchors.get(anchor)
        if node is None:
            raise _unreadable(self._file, line, "an anchor that stands above and is complete", f"*{anchor}")
        self._put(node, None)

    def _put(self, node: Node, anchor: str | None) -> None:
        """Hang a complete node where it belongs."""
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self._root = node
            return
        parent = self._open[-1][0]
        parent.size += node.size
        if parent.size > MOST_NODES:
            raise _unreadable(self._file, node.line, f"at most {MOST_NODES} values", "more")
        parent.height = max(parent.height, node.height + 1)
        if parent.height > MOST_DEPTH:
            raise _unreadable(self._file, node.line, f"at most {MOST_DEPTH} levels", "more")
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif (key := self._keys[-1]) is None:
            self._begin_entry(node)
        else:
            self._keys[-1] = None
            self._add_entry(parent, key, node)

    def _begin_entry(self, node: Node) -> None:
        if not isinstance(node, Scalar):
            raise _unreadable(self._file, node.line, "text as a key", kind_of(node))
        if node.plain and node.text == "<<":
            raise _unreadable(self._file, node.line, "no merge key (an alias may stand for a whole value)", "<<")
        self._keys[-1] = node

    def _add_entry(self, parent: Mapping, key: Scalar, node: Node) -> None:
        first = parent.entries.get(key.text)
        if first is not None:
            self._report.add(key.line, key.text, "each key once", f"the key of line {first[0].line} again")
            return
        parent.entries[key.text] = (key, node)
