"""Text to speech by VITS, such as the thousand languages of MMS: a sentence is one forward pass."""

import math
from typing import Any

import torch
from transformers import AutoTokenizer, VitsModel

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Input, SpeechInput
from gateway.contract.tasks import Task
from workers.engine import RefusedInput
from workers.engines.speech.family import Place, SoundLimits
from workers.engines.speech.job import Job, Samples
from workers.engines.speech.options import BadModel
from workers.engines.speech.speaking import Manner, check_manner, speak, speaker_of
from workers.engines.speech.torched import Brake, prepare, read, read_weights, seed_of, sourced

MOST_TOKEN_S = 0.5
"""No letter lasts longer: the durations are predicted, and memory grows with them. At two tokens a letter this keeps
what is predicted within the quoted 1.2 s a byte."""


class Vits:
    """A loaded VITS."""

    tasks: frozenset[Task] = frozenset({"text-to-speech"})
    limits: SoundLimits | None = None

    def __init__(self, model: Any, tokenizer: Any, place: Place) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._voice = place.options.voice
        self._language = place.options.language
        self._speakers = max(1, int(model.config.num_speakers))
        self._brake = Brake(model)
        frame_s = math.prod(model.config.upsample_rates) / model.config.sampling_rate
        longest = math.log(MOST_TOKEN_S / frame_s)
        model.duration_predictor.register_forward_hook(lambda _, __, made: made.clamp(max=longest))

    def check(self, given: Input) -> None:
        """Refuse voices, languages and pitches that it has not."""
        assert isinstance(given, SpeechInput)
        check_manner(given, self._language)
        speaker_of(given.voice or self._voice, self._speakers)

    def work(self, job: Job) -> MediaOutput:
        """Speak sentence by sentence; `speed` is the model's own speaking rate."""
        given = job.run.input
        assert isinstance(given, SpeechInput)
        speaker = speaker_of(given.voice or self._voice, self._speakers)
        seed = seed_of(given)
        torch.manual_seed(seed)

        def synthesise(text: str) -> Samples | None:
            ids = self._tokenizer(text, return_tensors="pt").input_ids.to(self._model.device)
            if not ids.shape[1] or not ids.any():  # token 0 stands between letters, of which there are none
                return None
            with self._brake.forward(job):
                made = self._model(ids.long(), speaker_id=speaker, speaking_rate=given.speed or 1.0)
                samples: Samples = made.waveform[0].float().cpu().numpy()
            return samples

        rate = int(self._model.config.sampling_rate)
        return speak(job, given, Manner(rate=rate, stretch=False, seed=seed), synthesise)


def load(place: Place) -> Vits:
    """Load the model and its tokenizer."""
    source = sourced(place)
    prepare(place.options, source)
    tokenizer = read(AutoTokenizer, source, place.options)
    vits = Vits(read_weights(VitsModel, source, place.options), tokenizer, place)
    try:
        speaker_of(place.options.voice, vits._speakers)
    except RefusedInput as error:
        raise BadModel(str(error)) from None
    return vits
