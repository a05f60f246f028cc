"""What is wrong with a catalog, in full: each problem with its line, field, what was expected and what was found."""

from typing import Any

import msgspec

MOST_PROBLEMS = 100
FOUND_LENGTH = 60


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `line` counts from 1; 0 where the whole file is meant."""

    line: int
    field: str
    """Where, as `models.tiny-llama.price[0].usd`; empty for the whole file."""
    expected: str
    found: str

    def text(self, file: str) -> str:
        """Write it as one line, as compilers do."""
        place = f"{file}:{self.line}" if self.line else file
        field = f" {self.field}:" if self.field else ""
        return f"{place}:{field} expected {self.expected}, found {self.found}"


class CatalogError(Exception):
    """A catalog that cannot be used. Nothing of it has been applied."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(problem.text(file) for problem in self.problems))


class Report:
    """Collects problems while a catalog is read, up to a limit."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, line: int, field: str, expected: str, found: str) -> None:
        """Note a problem. What is past the limit is not noted."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(line=line, field=field, expected=expected, found=found))


def shown(value: Any) -> str:
    """Write what was found so that it fits a line: quoted, escaped, cut."""
    text = str(value)
    if len(text) > FOUND_LENGTH:
        text = text[:FOUND_LENGTH] + "..."
    return msgspec.json.encode(text).decode() if text.isprintable() else ascii(text)
