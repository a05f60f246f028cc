"""Which files of tests share a running system: one process runs them all, and stops the system after the last.

A file's room is the system that its tests take by a fixture, through other fixtures too; a file without one is a room
of its own. Systems that only wait cost half a processor by the dozen.
"""

import ast
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import TypeVar

from xdist.scheduler import LoadScopeScheduling

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
SYSTEMS = ("dialects", "routing", "site", "taking_system", "media_system", "system")
"""Fixtures of session scope that run a whole Faregate, the one that most files share last."""

_running = ExitStack()


def enter(context: AbstractContextManager[T]) -> T:
    """Begin what the files of this room share."""
    return _running.enter_context(context)


def leave() -> None:
    """Stop what was begun for this room."""
    _running.close()


@cache
def room_of(path: str) -> str:
    """Name the room of a file of tests; `path` is as in a test's id."""
    file = ROOT / path
    fixtures: dict[str, set[str]] = {}
    for folder in reversed(file.relative_to(ROOT).parents):
        conftest = ROOT / folder / "conftest.py"
        if conftest.exists():
            fixtures |= _fixtures(conftest)
    own = _fixtures(file)
    wanted = {name for function in _functions(file) if function.name.startswith("test_") for name in _takes(function)}
    reached = _closure(wanted, fixtures | own)
    shared = [name for name in SYSTEMS if name in reached and name not in own]
    return shared[0] if shared else path


def _closure(names: set[str], fixtures: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    while names:
        reached |= names
        names = {taken for name in names for taken in fixtures.get(name, ())} - reached
    return reached


def _fixtures(file: Path) -> dict[str, set[str]]:
    return {
        function.name: _takes(function)
        for function in _functions(file)
        if any("fixture" in ast.unparse(each) for each in function.decorator_list)
    }


def _functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _takes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {each.arg for each in function.args.args}


class RoomScheduling(LoadScopeScheduling):
    """Gives each room to one process of a run, the fullest rooms first."""

    def _split_scope(self, nodeid: str) -> str:
        return room_of(nodeid.partition("::")[0])
