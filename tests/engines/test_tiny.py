"""The tiny models: what is made, how fast, and that it is what transformers and safetensors can read."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.tiny.models import TINY_MODELS

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]  # of the libraries that write tiny models

NAMES = ("tiny-llama", "tiny-llama-slow", "tiny-embed", "tiny-rerank")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "workers", "make-tiny", *arguments], capture_output=True, text=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from workers.tiny.models import make_tiny

    folder = tmp_path_factory.mktemp("models")
    make_tiny(folder)
    return folder


def test_all_are_made_in_seconds_and_are_small(tmp_path: Path) -> None:
    began = time.monotonic()
    made = run(str(tmp_path))
    assert made.returncode == 0, made.stderr
    assert time.monotonic() - began < 120
    assert {path.name for path in tmp_path.iterdir()} == set(TINY_MODELS), "nothing unfinished is left"
    assert sum(len(data) for data in contents(tmp_path).values()) < 100e6
    for name in NAMES:
        size = sum(len(data) for data in contents(tmp_path / name).values())
        assert 1e6 < size < 10e6


def test_what_is_there_stays_as_it_is(models: Path) -> None:
    before = contents(models)
    again = run(str(models), "tiny-embed")
    assert again.returncode == 0
    assert contents(models) == before


def test_they_are_the_same_on_every_machine(models: Path, tmp_path: Path) -> None:
    from workers.tiny.models import make_tiny

    make_tiny(tmp_path, ["tiny-llama"])
    assert contents(tmp_path / "tiny-llama") == contents(models / "tiny-llama")


def test_a_name_that_is_none_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    refused = run(str(tmp_path / "new"), "tiny-gpt")
    assert refused.returncode == 2
    assert "tiny-gpt" in refused.stderr
    assert all(name in refused.stderr for name in NAMES)


def test_two_makers_at_once_do_not_meet(tmp_path: Path) -> None:
    from workers.tiny.models import make_tiny

    with ThreadPoolExecutor(4) as pool:
        made = [done.result() for done in [pool.submit(make_tiny, tmp_path, ["tiny-llama"]) for _ in range(4)]]
    assert all(path == tmp_path / "tiny-llama" for ((path, _),) in made)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny-llama"]


@pytest.mark.parametrize("name", NAMES)
def test_each_says_that_its_weights_are_random(models: Path, name: str) -> None:
    config = json.loads((models / name / "config.json").read_text())
    assert config["weights"] == "random"
    assert "random" in config["description"]
    assert "random numbers" in (models / name / "README.md").read_text()


def test_transformers_loads_the_model_and_the_engine_need_not_guess_its_shape(models: Path) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import AutoModelForCausalLM

    model, told = AutoModelForCausalLM.from_pretrained(models / "tiny-llama", output_loading_info=True)
    assert not any(told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.config.num_hidden_layers == 2


def test_a_text_has_at_most_as_many_tokens_as_bytes_and_comes_back() -> None:
    from workers.tiny.tokenizer import build_tokenizer

    tokenizer = build_tokenizer()

    @given(st.text(max_size=200))
    def holds(text: str) -> None:
        ids = tokenizer.encode(text).ids
        assert len(ids) <= len(text.encode())
        assert "<" in text or tokenizer.decode(ids) == text  # marks such as <|im_end|> are not text

    holds()


def test_the_chat_template_tells_tools_calls_and_results(models: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(models / "tiny-llama")
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}]
    call = {"type": "function", "function": {"name": "clock", "arguments": {"zone": "UTC"}}}
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "what time is it?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "noon"},
    ]
    text = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
    assert text.count("be brief") == 1
    assert '"name": "clock"' in text
    assert '<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>' in text
    assert "<tool_response>noon</tool_response>" in text
    assert text.endswith("<|im_start|>assistant\n")


def test_the_command_of_the_gateway_makes_them_too(tmp_path: Path) -> None:
    """`faregate models make-tiny` hands on what the workers' code says, and its exit code."""
    command = [sys.executable, "-m", "gateway.cli", "models", "make-tiny", str(tmp_path)]
    made = subprocess.run([*command, "tiny-embed"], capture_output=True, text=True)
    assert (made.returncode, str(tmp_path / "tiny-embed") in made.stdout) == (0, True), made.stderr
    refused = subprocess.run([*command, "tiny-gpt"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "tiny-gpt" in refused.stderr
