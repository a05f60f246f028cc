"""Models that have no family of their own: a tiny Bark, made here, is loaded as text-to-waveform and speaks."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.contract.pools import ServedModel
from tests.engines.speech_driver import Driver, decoded

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and transformers themselves

WIDTH = {"hidden_size": 8, "num_layers": 1, "num_heads": 1}
CODEC = {
    "sampling_rate": 24_000,
    "num_filters": 4,
    "hidden_size": 8,
    "codebook_size": 1024,
    "codebook_dim": 8,
    "upsampling_ratios": [8, 5, 4, 2],
    "num_lstm_layers": 1,
    "target_bandwidths": [6.0],
}
PARTS: dict[str, dict[str, Any]] = {
    "semantic_config": {"max_new_tokens": 12},
    "coarse_acoustics_config": {"max_coarse_history": 60, "sliding_window_len": 60},
    "fine_acoustics_config": {},
}


def write_bark(folder: Path) -> None:
    """Make a Bark of random weights, the sizes of its vocabularies as they are fixed in its code."""
    from transformers import BarkConfig, BarkModel, BarkProcessor, PreTrainedTokenizerFast
    from transformers.models.bark.generation_configuration_bark import BarkGenerationConfig

    from workers.tiny.tokenizer import build_tokenizer

    bark = BarkModel(
        BarkConfig(
            semantic_config={"input_vocab_size": 129_600, "output_vocab_size": 10_048} | WIDTH,
            coarse_acoustics_config={"input_vocab_size": 12_096, "output_vocab_size": 12_096} | WIDTH,
            fine_acoustics_config={"input_vocab_size": 1056, "output_vocab_size": 1056} | WIDTH,
            codec_config={"model_type": "encodec"} | CODEC,
        )
    )
    usual = BarkGenerationConfig().to_dict()
    for name, short in PARTS.items():
        part = usual[name] if isinstance(usual[name], dict) else usual[name].to_dict()
        setattr(bark.generation_config, name, {key: value for key, value in part.items() if value is not None} | short)
    bark.generation_config.codebook_size, bark.generation_config.sample_rate = 1024, 24_000
    bark.generation_config._from_model_config = False
    bark.save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=build_tokenizer(), pad_token="<|endoftext|>")
    BarkProcessor(tokenizer=tokenizer).save_pretrained(folder)


async def test_a_checkpoint_of_any_kind_speaks(tmp_path: Path, speech: Driver) -> None:
    """The fixture `speech` is here for its look at what is installed."""
    write_bark(tmp_path / "bark")
    model = ServedModel(name="bark", tasks=["text-to-speech"], source="bark")
    driver = await asyncio.to_thread(Driver, tmp_path, model)
    assert driver.states["bark"].state == "ready", driver.states
    attempt = driver.start("bark", "text-to-speech", input="A gate. A fare.", response_format="wav")
    samples, rate, _ = decoded(await attempt.sound())
    assert (rate, len(samples) > 1000, attempt.run.units.characters) == (24_000, True, 15)
    assert np.abs(samples).max() > 0
    await driver.engine.unload()


async def test_weights_that_are_not_safetensors_are_not_read(tmp_path: Path, speech: Driver) -> None:
    """A checkpoint with a pickle in it fails to load; the others of the worker go on."""
    from transformers import VitsConfig

    folder = tmp_path / "pickled"
    VitsConfig().save_pretrained(folder)
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02.")
    (folder / "vocab.json").write_text('{"a": 0}')
    states: dict[str, Any] = {}
    engine = type(speech.engine)(tmp_path)
    models = [
        ServedModel(name="pickled", tasks=["text-to-speech"], source="pickled"),
        ServedModel(name="espeak-ng", tasks=["text-to-speech"]),
    ]
    await engine.load(models, states.__setitem__)
    assert states["pickled"].state == "failed"
    assert "safetensors" in states["pickled"].detail
    assert states["espeak-ng"].state == "ready"
    await engine.unload()
