"""litellm, unmodified, as a client of our OpenAI family: text, streams, images, speech, videos, errors of its own."""

import fcntl
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from deploy.install import uv_environ
from tests.conftest import absent
from tests.sdk.secured import Secured

PACKAGE = "litellm==1.106.2"
UV = Path(sys.executable).with_name("uv")
"""Installs in a tenth of pip's time."""
CALLER = Path(__file__).with_name("litellm_caller.py")
INSTALL_S = 600
CALLS_S = 500
SAID = "the gate opens at dawn and every fare is counted once before it shuts"


@pytest.fixture(scope="session")
def litellm_python(pytestconfig: pytest.Config) -> Path:
    """Answer the Python of a virtual environment that has litellm, made once and kept: it wants an older openai."""
    assert pytestconfig.cache is not None
    home = pytestconfig.cache.mkdir(PACKAGE.replace("==", "-"))
    python, done = home / "bin" / "python", home / "installed"
    with (home.parent / "litellm.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # the processes of one run, one after the other
        if not done.exists():
            venv.create(home, with_pip=not UV.exists(), clear=True)
            made = subprocess.run(
                [UV, "pip", "install", "--python", python, PACKAGE]
                if UV.exists()
                else [python, "-m", "pip", "install", PACKAGE],
                env=uv_environ() | {"VIRTUAL_ENV": str(home)},
                capture_output=True,
                text=True,
                timeout=INSTALL_S,
                check=False,
            )
            if made.returncode:
                absent(f"litellm could not be installed: {made.stderr[-500:]}")
            done.touch()
    return python


@pytest.fixture(scope="session")
def told(litellm_python: Path, dialects: Secured) -> dict[str, Any]:
    """Answer what litellm was told."""
    command = [str(litellm_python), str(CALLER), dialects.system.base_url, dialects.system.api_key]
    environ = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    made = subprocess.run(command, capture_output=True, text=True, timeout=CALLS_S, env=environ, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    known: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return known


def test_a_chat_is_answered_with_its_usage_and_charge(told: dict[str, Any]) -> None:
    assert told["whole"].startswith(SAID)
    assert told["later"] == told["completion"] == told["whole"]
    assert (told["usage"]["completion_tokens"], told["usage"]["charge_nanos"]) == (20, 1_000_000)
    assert told["charge"] == "1000000"


def test_a_chat_is_streamed_to_its_usage(told: dict[str, Any]) -> None:
    assert told["stream"].startswith(SAID)
    assert told["stream_tokens"] == [30]


def test_images_speech_and_videos_come(told: dict[str, Any]) -> None:
    assert told["images"] == 2
    assert told["speech"] > 1000
    assert told["video"] == ["completed", "fake-veo", "ftyp"]


def test_errors_are_litellms_own(told: dict[str, Any]) -> None:
    assert told["unknown"] == ["NotFoundError", 404]
    assert told["odd"] == ["BadRequestError", 400]
    assert told["stranger"] == ["AuthenticationError", 401]
    assert told["dear"][1] == 402
