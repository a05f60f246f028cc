"""What a reviewer would say twice is checked: the environment, exceptions, imports, dangerous calls, leftovers."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shape.sources import EVERYTHING, PACKAGES, ROOT, files, functions, place, tree

ENVIRONMENT_READERS = {"gateway/settings.py", "workers/settings.py"}
OUTERMOST = {
    "gateway/commands/settler.py",  # the settler's wait for its first catalog
    "gateway/flow/resend.py",  # the gateway's loops
    "gateway/flow/settle.py",  # the settler's loops
    "gateway/flow/sweep.py",
    "gateway/http/endpoint.py",  # a raw route has no framework around it that would answer 500
    "gateway/http/fal/door.py",
    "gateway/http/native/quotes.py",
    "gateway/http/native/submit.py",
    "workers/run.py",  # a fault of an engine is the end of its request, not of the worker
}
HEAVY = {
    "vllm",
    "torch",
    "torchao",
    "transformers",
    "tokenizers",
    "safetensors",
    "workers",
    "av",
    "PIL",
    "obstore",
    "numpy",
    "espeakng_loader",
    "arro3",
    "typst",
    "cryptography",
}
LATE = {
    "gateway.admin.site.oidc.provider",  # loads joserfc and cryptography
    "gateway.admin.site.oidc.routes",
    "gateway.app.site",  # loads jinja2, and all pages
    "gateway.catalog.parse",  # loads ruamel.yaml
    "gateway.reports.exports.arrow_file",  # loads arro3
}
"""Modules of ours that load what few processes need."""
NOT_AT_THE_START = {"arro3", "cryptography", "jinja2", "joserfc", "pydantic", "ruamel", "typst"}
"""30 MB that a gateway does without until a call needs them, and 1 s of CPU."""
DANGEROUS_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.load", "tempfile.mktemp"}
DANGEROUS_MODULES = {"pickle", "marshal", "shelve", "dill", "telnetlib", "xmlrpc"}
LEFTOVERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def nodes(*folders: str) -> Iterator[tuple[Path, ast.AST]]:
    for path in files(*folders):
        for node in ast.walk(tree(path)):
            yield path, node


def name_of(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def test_only_the_two_settings_files_read_variables_of_the_environment() -> None:
    """Handing the whole environment on, to a child or to the settings, is not reading it."""
    reads = [
        place(path, node)
        for path, node in nodes(*PACKAGES)
        if relative(path) not in ENVIRONMENT_READERS
        and (
            (isinstance(node, ast.Subscript) and name_of(node.value) == "os.environ" and isinstance(node.ctx, ast.Load))
            or (isinstance(node, ast.Call) and name_of(node.func) in {"os.getenv", "os.environ.get", "os.environ.pop"})
        )
    ]
    assert reads == []


def test_only_outermost_loops_catch_every_exception() -> None:
    caught = [
        place(path, node)
        for path, node in nodes(*PACKAGES)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or name_of(node.type) in {"Exception", "BaseException"})
        and not any(isinstance(each, ast.Raise) and each.exc is None for each in ast.walk(node))
        and relative(path) not in OUTERMOST
    ]
    assert caught == []


def test_nothing_is_imported_inside_functions_but_heavy_engines() -> None:
    inside = [
        f"{place_} imports {name}"
        for place_, function in functions(*PACKAGES)
        for node in ast.walk(function)
        for name in imported(node)
        if name.partition(".")[0] not in HEAVY and name not in LATE
    ]
    assert inside == []


@pytest.mark.parametrize("command", ["gateway", "settler"])
def test_a_process_starts_without_what_few_calls_need(command: str) -> None:
    words = f"import sys; sys.modules['rich'] = None; import gateway.commands.{command}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "gateway" in loaded
    assert loaded & NOT_AT_THE_START == set()


def test_nothing_dangerous_is_called_or_imported() -> None:
    found = []
    for path, node in nodes(*PACKAGES, "bench", "deploy", "migrations"):
        if isinstance(node, ast.Call):
            shell = any(each.arg == "shell" for each in node.keywords)
            if name_of(node.func) in DANGEROUS_CALLS or shell:
                found.append(place(path, node))
        if DANGEROUS_MODULES & {name.partition(".")[0] for name in imported(node)}:
            found.append(relative(path))
    assert found == []


@pytest.mark.parametrize("folder", EVERYTHING)
def test_nothing_is_left_to_be_done_later(folder: str) -> None:
    left = [
        f"{relative(path)}:{number}"
        for path in files(folder)
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if LEFTOVERS.search(line)
    ]
    assert left == []


def test_lua_and_sql_files_say_what_they_are_for_at_the_top() -> None:
    sources = [path for folder in ("gateway", "migrations") for path in (ROOT / folder).rglob("*.[ls][uq][al]")]
    assert sources
    assert [relative(path) for path in sources if not path.read_text().startswith("--")] == []
