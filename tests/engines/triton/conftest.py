"""One real Triton server for the tests of a process; its programs are made once, under build/triton."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy.triton import SetupError, make
from tests.conftest import absent

if TYPE_CHECKING:
    from tests.engines.triton.server import TritonServer

ROOT = Path(__file__).parents[3]
NEEDED = ("tritonclient", "grpc", "tokenizers", "jinja2", "huggingface_hub", "PIL")

collect_ignore_glob = [] if os.environ.get("CI") or all(find_spec(name) for name in NEEDED) else ["test_*.py"]
"""Not even imported on a laptop without the packages of the extra `triton`; in CI that is a failure."""


@pytest.fixture(scope="session")
def triton_program() -> Path:
    """Answer the script that starts a Triton server; made where it is missing, which takes 15 s and the network."""
    try:
        return make(ROOT / "build" / "triton")
    except (SetupError, OSError) as error:
        absent(error)
        raise


@pytest.fixture(scope="session")
def shared_triton(triton_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator["TritonServer"]:
    """Answer a running server with the test models, for all tests of a process."""
    from tests.engines.triton.server import TritonServer

    server = TritonServer(triton_program, tmp_path_factory.mktemp("triton"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture
def triton(shared_triton: "TritonServer") -> "TritonServer":
    """Answer the shared server, started again where a test before this one has left it dead or stuck."""
    shared_triton.revive()
    return shared_triton
