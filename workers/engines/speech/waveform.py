"""Text to speech by any other checkpoint that transformers loads as text-to-waveform, such as Bark.

Nothing is known here of voices or speeds of such a model: it has one voice, and the sound is stretched to the speed.
"""

from typing import Any

import torch
from transformers import AutoModelForTextToWaveform, AutoProcessor

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Input, SpeechInput
from gateway.contract.tasks import Task
from workers.engine import EngineError
from workers.engines.speech.family import Place, SoundLimits
from workers.engines.speech.job import Job, Samples
from workers.engines.speech.options import BadModel
from workers.engines.speech.speaking import Manner, check_manner, speak, speaker_of
from workers.engines.speech.torched import Brake, prepare, read, read_weights, seed_of, sourced


class Waveform:
    """A loaded checkpoint of a kind that has no family of its own."""

    tasks: frozenset[Task] = frozenset({"text-to-speech"})
    limits: SoundLimits | None = None

    def __init__(self, model: Any, processor: Any, place: Place) -> None:
        self._model = model
        self._processor = processor
        self._options = place.options
        self._rate = _rate_of(model)
        self._brake = Brake(model)

    def check(self, given: Input) -> None:
        """Refuse voices, languages and pitches that it has not."""
        assert isinstance(given, SpeechInput)
        check_manner(given, self._options.language)
        speaker_of(given.voice or self._options.voice, 1)

    def work(self, job: Job) -> MediaOutput:
        """Speak sentence by sentence."""
        given = job.run.input
        assert isinstance(given, SpeechInput)
        seed = seed_of(given)
        torch.manual_seed(seed)

        def synthesise(text: str) -> Samples | None:
            if not any(letter.isalnum() for letter in text):
                return None
            inputs = self._processor(text, return_tensors="pt").to(self._model.device)
            with self._brake.forward(job):
                made = self._model.generate(**inputs) if self._model.can_generate() else self._model(**inputs)
                samples: Samples = _waveform_of(made).float().cpu().numpy()
            return samples

        return speak(job, given, Manner(rate=self._rate, seed=seed), synthesise)


def load(place: Place) -> Waveform:
    """Load the model and what prepares its texts. Raises BadModel where its sound has no rate."""
    source = sourced(place)
    prepare(place.options, source)
    processor = read(AutoProcessor, source, place.options)
    return Waveform(read_weights(AutoModelForTextToWaveform, source, place.options), processor, place)


def _rate_of(model: Any) -> int:
    """Find the rate of the sound: each kind of model keeps it elsewhere."""
    config = model.config
    holders = (getattr(model, "generation_config", None), config, *(getattr(config, name, None) for name in _CODECS))
    for holder in holders:
        for name in ("sample_rate", "sampling_rate"):
            if rate := getattr(holder, name, None):
                return int(rate)
    raise BadModel("this model does not say the rate of its sound: it cannot be served")


_CODECS = ("codec_config", "audio_encoder", "vocoder_config")


def _waveform_of(made: Any) -> Any:
    """Find one channel of sound in what a model answers."""
    for name in ("waveform", "audio", "sequences"):
        made = getattr(made, name, made)
    if isinstance(made, tuple | list):
        made = made[0]
    if not isinstance(made, torch.Tensor) or not made.is_floating_point():
        raise EngineError("The model made no sound.")
    return made.squeeze() if made.squeeze().dim() == 1 else made.reshape(-1, made.shape[-1])[0]
