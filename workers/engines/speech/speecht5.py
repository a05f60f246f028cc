"""Speech in a voice of choice by SpeechT5: a speaker's vector says whose, HiFi-GAN makes it sound.

For `voice-clone` the vector is computed from the caller's sample by a model of speakers (x-vectors), which must have
been trained for vectors of the length that the checkpoint takes. For `text-to-speech` it comes from `speaker_file`.
"""

from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import load_file
from transformers import (
    AutoFeatureExtractor,
    AutoModelForAudioXVector,
    AutoTokenizer,
    SpeechT5ForTextToSpeech,
    SpeechT5HifiGan,
)

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Input, SpeechInput, VoiceCloneInput
from gateway.contract.tasks import Task
from workers.engines.speech.family import Place, SoundLimits
from workers.engines.speech.job import Job, Samples
from workers.engines.speech.options import BadModel, Source, SpeechOptions, part_of
from workers.engines.speech.sound import RATE
from workers.engines.speech.speaking import Manner, check_manner, speak, speaker_of
from workers.engines.speech.torched import Brake, device_of, prepare, read, read_weights, seed_of, sourced

VOCODER, SPEAKER = "vocoder", "speaker"
LONGEST_RATIO = 18.0
"""Frames of 16 ms for each token at most, 0.3 s: a model that never ends is cut off there."""


class Listener:
    """The model of speakers: from a voice to a vector."""

    def __init__(self, source: Source, options: SpeechOptions) -> None:
        self._extractor = read(AutoFeatureExtractor, source, options)
        self.model = read_weights(AutoModelForAudioXVector, source, options, dtype="float32")

    def vector(self, sound: Samples) -> Any:
        """Compute the vector of a voice, of length 1; within a forward block."""
        inputs = self._extractor(sound, sampling_rate=RATE, return_tensors="pt").to(self.model.device)
        return torch.nn.functional.normalize(self.model(**inputs).embeddings, dim=-1)


class SpeechT5:
    """A loaded SpeechT5, with or without a model of speakers."""

    def __init__(self, model: Any, tokenizer: Any, vocoder: Any, place: Place) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._vocoder = vocoder
        self._options = place.options
        self._listener: Listener | None = None
        self._speaker = _own_speaker(place, int(model.config.speaker_embedding_dim))
        self._brake = Brake(model, vocoder)

    def listen(self, listener: Listener) -> None:
        """Take the model of speakers. Raises BadModel where its vectors are of another length."""
        has, wants = int(listener.model.config.xvector_output_dim), int(self._model.config.speaker_embedding_dim)
        if has != wants:
            raise BadModel(f"speaker_encoder: its vectors have {has} numbers, and the model takes {wants}")
        self._listener = listener
        self._brake = Brake(self._model, self._vocoder, listener.model)

    @property
    def tasks(self) -> frozenset[Task]:
        """What it does: voices of callers only with a model of speakers."""
        return frozenset({"text-to-speech", "voice-clone"} if self._listener else {"text-to-speech"})

    @property
    def limits(self) -> SoundLimits:
        """The limits of a sample."""
        options = self._options
        return SoundLimits(least_s=options.sample_min_s, most_s=options.sample_max_s, silence=False)

    def check(self, given: Input) -> None:
        """Refuse voices, languages and pitches that it has not."""
        assert isinstance(given, SpeechInput | VoiceCloneInput)
        check_manner(given, self._options.language)
        if isinstance(given, SpeechInput):
            speaker_of(given.voice or self._options.voice, 1)

    def work(self, job: Job) -> MediaOutput:
        """Speak sentence by sentence, in the voice of the sample where there is one."""
        given = job.run.input
        assert isinstance(given, SpeechInput | VoiceCloneInput)
        seed = seed_of(given)
        speaker = self._speaker
        torch.manual_seed(seed)  # its prenet drops out at inference, too: each run differs
        if self._listener is not None and isinstance(given, VoiceCloneInput):
            with self._brake.forward(job):
                speaker = self._listener.vector(job.sound).to(self._model.dtype)

        def synthesise(text: str) -> Samples | None:
            ids = self._tokenizer(text.strip(), return_tensors="pt").input_ids.to(self._model.device)
            if not ids.shape[1] or not any(letter.isalnum() for letter in text):
                return None
            with self._brake.forward(job):
                made = self._model.generate_speech(ids, speaker, vocoder=self._vocoder, maxlenratio=LONGEST_RATIO)
                samples: Samples = made.float().cpu().numpy()
            return samples

        return speak(job, given, Manner(rate=int(self._vocoder.config.sampling_rate), seed=seed), synthesise)


def load(place: Place) -> SpeechT5:
    """Load the model, its vocoder, and its model of speakers where it has one."""
    source, options = sourced(place), place.options
    prepare(options, source)
    beside = msgspec.structs.replace(options, revision=None)  # the revision is the model's own
    vocoder = part_of(source, options.vocoder or VOCODER, place.models_dir)
    loaded = SpeechT5(
        read_weights(SpeechT5ForTextToSpeech, source, options),
        read(AutoTokenizer, source, options),
        read_weights(SpeechT5HifiGan, vocoder, beside),
        place,
    )
    inside = source.local and (Path(source.where) / SPEAKER / "config.json").is_file()
    if options.speaker_encoder or inside:
        encoder = part_of(source, options.speaker_encoder or SPEAKER, place.models_dir)
        loaded.listen(Listener(encoder, beside))
    return loaded


def _own_speaker(place: Place, length: int) -> Any:
    """Read the voice of text-to-speech; a neutral one, in the middle of all, where none is set. Raises BadModel."""
    device = device_of(place.options)
    name = place.options.speaker_file
    if name is None:
        return torch.zeros(1, length, device=device)
    path = Path(sourced(place).where) / name
    vector = load_file(path if path.is_file() else name, device=str(device)).get("speaker")
    if vector is None or vector.numel() != length:
        raise BadModel(f"speaker_file: it needs a tensor `speaker` of {length} numbers")
    return vector.reshape(1, length)
