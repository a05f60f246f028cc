"""One running system for the chaos tests, with short leases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system import System, running_system

CATALOG = Path(__file__).parent / "catalog.yaml"
MODELS = ("fake-chat", "fake-stream")


@pytest.fixture(scope="module")
def stormy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A running system to break; it must be whole again after each test."""
    with running_system(tmp_path_factory.mktemp("chaos") / "data", "--catalog", str(CATALOG)) as system:
        system.wait_ready(*MODELS)
        yield system
