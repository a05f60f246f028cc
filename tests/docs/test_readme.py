"""The README's commands work as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import openai  # noqa: F401 - the README's example needs it
import pytest

from tests.system import System

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
CURLS = [block for _, block in BLOCKS if block.startswith("curl ")]
COMMANDS = [
    line
    for _, block in BLOCKS
    for line in block.splitlines()
    if line.startswith(".venv/bin/faregate") and "keys create" not in line
]


def environment(system: System) -> dict[str, str]:
    return os.environ | {"OPENAI_BASE_URL": f"{system.base_url}/v1", "OPENAI_API_KEY": system.api_key}


def here(text: str) -> str:
    """Put models in that this system serves: vLLM has a stage of its own."""
    return text.replace("tiny-llama", "fake-chat")


def test_it_is_short_enough_to_be_read() -> None:
    assert len(TEXT.splitlines()) <= 250


@pytest.mark.parametrize("call", CURLS)
def test_every_curl_call_works_as_printed(system: System, tmp_path: Path, call: str) -> None:
    ran = subprocess.run(
        ["sh", "-c", here(call)],
        cwd=tmp_path,
        env=environment(system),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "error" not in ran.stdout, ran.stdout
    if "-o speech.wav" in call:
        assert (tmp_path / "speech.wav").read_bytes()[:4] == b"RIFF"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_works_as_printed(system: System, command: str) -> None:
    words = command.split()[1:]
    database = {"diff": ["--data", str(system.data)], "apply": ["--data", str(system.data)]}
    ran = system.run(*words) if words[0] != "catalog" else catalog(words, database.get(words[1], []))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def catalog(words: list[str], options: list[str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "gateway.cli", *words, *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_sdk_example_runs(system: System, tmp_path: Path) -> None:
    [example] = [block for kind, block in BLOCKS if kind == "python"]
    spoken = here(example)
    spoken = re.sub(r"^vectors = .*?\n^print\(len.*?\n", "", spoken, flags=re.MULTILINE)  # embeddings need vLLM
    ran = subprocess.run(
        [sys.executable, "-c", spoken],
        cwd=tmp_path,
        env=environment(system),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "8 tokens, 1000000 nanos" in ran.stdout
    assert (tmp_path / "gap.mp3").stat().st_size > 1000
