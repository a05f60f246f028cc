"""A system whose models can do the same in several ways."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rooms import enter, leave
from tests.system import System, running_system

ROUTING = Path(__file__).parent / "routing.yaml"
READY = (
    *("dear-picture", "fair-picture", "small-picture"),
    *("two-ways", "one-way", "slow-chat", "either", "half-hosted"),
)
"""What is served there by somebody."""


@pytest.fixture(scope="session")
def routing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a whole running system with the catalog `routing.yaml`, shared by the tests of this process."""
    folder = tmp_path_factory.mktemp("routing")
    folder.chmod(0o711)
    made = enter(running_system(folder / "data", "--catalog", str(ROUTING), engines="fake,upstream"))
    made.wait_ready(*READY)
    yield made
    leave()
