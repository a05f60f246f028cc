"""The README's commands work as printed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import openai  # noqa: F401 - the README's examples need it
import pytest

from tests.system import System, running_system

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
CALLS = [block for kind, block in BLOCKS if kind == "python" or re.match(r"curl |FILE=", block)]
"""In the order of the page: a later call may read a file that an earlier one wrote."""
COMMANDS = [
    line
    for _, block in BLOCKS
    for line in block.splitlines()
    if line.startswith(".venv/bin/faregate") and "keys create" not in line
]

INSTALLED = find_spec("diffusers") is not None
CI = bool(os.environ.get("CI"))
WRITTEN = {
    "speech.wav": (0, b"RIFF"),
    "picture.png": (0, b"\x89PNG"),
    "video.mp4": (4, b"ftyp"),
    "cloned.wav": (0, b"RIFF"),
}
"""The files that the calls leave: where in each stands what."""


def here(text: str) -> str:
    """Put models in that this system serves: vLLM has a stage of its own."""
    text = re.sub(r"^vectors = .*?\n^print\(len.*?\n", "", text, flags=re.MULTILINE)
    return text.replace("tiny-llama", "fake-chat")


class Reader:
    """Somebody who follows the page from the top, in a folder of their own."""

    def __init__(self, system: System, folder: Path) -> None:
        self.folder = folder
        self.system = system
        self._environ = os.environ | {"OPENAI_BASE_URL": f"{system.base_url}/v1", "OPENAI_API_KEY": system.api_key}

    def follow(self, block: str) -> str:
        """Run a block as printed; answers what it printed."""
        words = [sys.executable, "-c"] if block.startswith("import ") else ["bash", "-euc"]
        ran = subprocess.run(
            [*words, here(block)],
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Answer a reader beside a system with all engines but vLLM."""
    folder = tmp_path_factory.mktemp("reader")
    folder.chmod(0o711)
    with running_system(folder / "data", engines="fake,speech,diffusers,workflow,upstream") as system:
        system.wait_ready("fake-chat", "tiny-sd", "tiny-wan", "tiny-whisper", "talking-head", within_s=300)
        yield Reader(system, folder)


def test_it_is_short_enough_to_be_read() -> None:
    assert len(TEXT.splitlines()) <= 250


@pytest.mark.skipif(not INSTALLED and not CI, reason="diffusers is not installed")
def test_every_call_works_as_printed_one_after_the_other(reader: Reader) -> None:
    calls = [call for call in CALLS if "tiny-rerank" not in call]  # tests/engines/test_vllm_rerank.py makes that one
    told = [reader.follow(call) for call in calls]
    assert len(calls) >= 6
    assert not [each for each in told if '"error":{' in each or "Traceback" in each]
    joined = "".join(told)
    assert "\n 1000000 nanos" in joined
    assert "video completed 10000000 nanos" in joined
    assert "read with openai: completed 10000000 nanos" in joined
    assert '"request_id":"req_' in joined
    assert '"id":"quo_' in joined
    assert joined.count('"status":"succeeded"') == 3  # the upscaled picture, the talking head, and what `auto` chose
    written = {name: (reader.folder / name).read_bytes() for name in WRITTEN}
    assert {name: data[at : at + 4] for name, (at, _) in WRITTEN.items() if (data := written[name])} == {
        name: head for name, (_, head) in WRITTEN.items()
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_works_as_printed(reader: Reader, command: str) -> None:
    system = reader.system
    words = command.split()[1:]
    database = {"diff": ["--data", str(system.data)], "apply": ["--data", str(system.data)]}
    ran = system.run(*words) if words[0] != "catalog" else catalog(words, database.get(words[1], []))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def catalog(words: list[str], options: list[str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "gateway.cli", *words, *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
