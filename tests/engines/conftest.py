"""Tests of an engine are not even imported where its packages are not installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from gateway.contract.pools import ServedModel
from tests.conftest import absent
from tests.engines.speech_driver import Driver, served

collect_ignore_glob = [] if find_spec("vllm") else ["test_vllm_*.py", "test_tiny.py"]
collect_ignore_glob += [] if find_spec("diffusers") else ["test_diffusers_*.py"]


@pytest.fixture(scope="session")
def diffusers_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answer a folder in which the tiny models of this run are made once, as they are needed."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    """Answer the engine of speech with every family in it, shared by the tests of this process."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            absent(package)
    driver = Driver(
        tmp_path_factory.mktemp("speech-models"),
        ServedModel(name="espeak-ng", tasks=["text-to-speech"]),
        served("tiny-vits", "text-to-speech", language="en"),
        served("tiny-speecht5", "text-to-speech", "voice-clone", sample_max_s=10),
        served("tiny-musicgen", "music"),
        served("tiny-whisper", "speech-to-text", max_seconds=120),
    )
    assert {name: state.state for name, state in driver.states.items()} == dict.fromkeys(driver.states, "ready")
    return driver
