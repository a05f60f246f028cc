"""What is imported is declared, what is declared is used and explained, and every version is pinned."""

import ast
import re
import sys
import tomllib

import pytest

from tests.shape.sources import PACKAGES, ROOT, files, tree
from tests.shape.test_rules import imported

OF_MODULE = {
    "PIL": "pillow",
    "arro3": "arro3-core",
    "espeakng_loader": "espeakng-loader",
    "grpc": "tritonclient",  # which brings it
    "huggingface_hub": "huggingface-hub",
    "prometheus_client": "prometheus-client",
    "ruamel": "ruamel.yaml",
}
CHOSEN_BY_NAME = {"accelerate", "arro3-io"}  # diffusers imports the one; the other lies in `arro3` too
WITH_VLLM = {"regex", "vllm"}
BESIDE = {"torchao"}  # for an option of diffusers, by whoever wants it
RUNTIME = ("speech", "diffusers", "triton", "s3", "reports")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", requirement)[0].lower() for requirement in requirements}


def distributions(*folders: str) -> set[str]:
    own = {"gateway", "workers", "tests", "bench", "revision"}
    modules = {
        name.partition(".")[0] for path in files(*folders) for node in ast.walk(tree(path)) for name in imported(node)
    }
    return {OF_MODULE.get(name, name) for name in modules - own - set(sys.stdlib_module_names) - {""}}


def test_the_packages_import_what_is_declared_and_declare_what_they_import() -> None:
    extras = PROJECT["optional-dependencies"]
    declared = names(PROJECT["dependencies"]).union(*(names(extras[name]) for name in RUNTIME))
    assert distributions(*PACKAGES, "migrations") - WITH_VLLM - BESIDE == declared - CHOSEN_BY_NAME


@pytest.mark.parametrize("extra", [None, *sorted(PROJECT["optional-dependencies"])])
def test_every_dependency_has_its_line_among_the_decisions(extra: str | None) -> None:
    page = (ROOT / "docs" / "decisions" / "dependencies.md").read_text()
    explained = set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE))
    wanted = names(PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"])
    assert wanted - explained == set()


def test_every_dependency_is_pinned_exactly() -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    pins += (ROOT / "deploy" / "cpu-constraints.txt").read_text().splitlines()
    pinned = {re.sub(r"[._]", "-", pin.partition("==")[0]).lower() for pin in pins if "==" in pin}
    extras = PROJECT["optional-dependencies"]
    wanted = names([*PROJECT["dependencies"], *extras["embedded"], *extras["dev"]])
    wanted = wanted.union(*(names(extras[name]) for name in RUNTIME))
    assert {re.sub(r"[._]", "-", name) for name in wanted} - pinned == set()
    assert [pin for pin in pins if not pin.startswith("#") and "==" not in pin] == []
