"""Where a model's weights lie, and what its entry may say."""

from pathlib import Path
from typing import Any

import pytest

from gateway.contract.pools import ServedModel
from workers.engines.diffusers.options import MIB, BadModel, declared_bytes, read_entry


def served(source: str, **options: Any) -> ServedModel:
    return ServedModel(name="m", tasks=["text-to-image"], source=source, options=options)


def test_a_source_is_a_folder_a_repository_or_a_tiny_model(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model_index.json").write_text("{}")
    here = read_entry(served(str(tmp_path / "mine")), tmp_path).source
    assert (here.where, here.local) == (str(tmp_path / "mine"), True)
    assert read_entry(served("mine"), tmp_path).source == here
    there = read_entry(served("stabilityai/sdxl-turbo"), tmp_path).source
    assert (there.where, there.local) == ("stabilityai/sdxl-turbo", False)
    tiny = read_entry(served("tiny:tiny-sd"), tmp_path)
    assert (tiny.source.where, tiny.options.threads) == (str(tmp_path / "tiny-sd"), 1)


@pytest.mark.parametrize("source", ["", "nowhere", "https://example.com/model", "a/b/c"])
def test_anything_else_is_none(source: str, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="neither a folder"):
        read_entry(served(source), tmp_path)


@pytest.mark.parametrize(
    "options",
    [{"trust_remote_code": True}, {"dtype": "int3"}, {"max_batch": 0}, {"device": "tpu"}, {"custom_pipeline": "x/y"}],
)
def test_an_option_that_is_none_is_refused_by_name(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=next(iter(options))):
        read_entry(served("a/b", **options), tmp_path)


def test_a_model_takes_what_it_declares_else_what_its_files_take(tmp_path: Path) -> None:
    (tmp_path / "unet").mkdir()
    (tmp_path / "model_index.json").write_text("{}")
    (tmp_path / "unet" / "weights.safetensors").write_bytes(bytes(1000))
    assert declared_bytes(read_entry(served(str(tmp_path)), tmp_path)) == 1000
    assert declared_bytes(read_entry(served(str(tmp_path), memory_mb=3), tmp_path)) == 3 * MIB
    assert declared_bytes(read_entry(served("a/b"), tmp_path)) == 0
