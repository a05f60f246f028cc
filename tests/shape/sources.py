"""The sources that the shape tests read: our own packages, parsed once."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "workers")
EVERYTHING = (*PACKAGES, "bench", "migrations", "deploy", "tests")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def files(*folders: str) -> tuple[Path, ...]:
    """Answer the Python files under some folders, without environments that lie in them."""
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return tuple(path for path in found if "site-packages" not in path.parts)


@cache
def tree(path: Path) -> ast.Module:
    """Answer a file, parsed."""
    return ast.parse(path.read_text(), str(path))


def lines(path: Path) -> int:
    """Count a file's lines."""
    return len(path.read_text().splitlines())


def functions(*folders: str) -> Iterator[tuple[str, Function]]:
    """Answer every function with the place where it stands."""
    for path in files(*folders):
        for node in ast.walk(tree(path)):
            if isinstance(node, Function):
                yield place(path, node), node


def place(path: Path, node: ast.stmt | ast.expr | ast.excepthandler) -> str:
    """Name a place as compilers do."""
    return f"{path.relative_to(ROOT)}:{node.lineno}"
