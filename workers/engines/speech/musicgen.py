"""Music by MusicGen: a text becomes codes, 50 steps for a second of sound or as many as its codec has."""

import math
from typing import Any

import torch
from transformers import AutoTokenizer, MusicgenForConditionalGeneration, StoppingCriteria, StoppingCriteriaList

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Input, MusicInput
from gateway.contract.inputs.speech import music_seconds
from gateway.contract.tasks import Task
from workers.engine import RefusedInput
from workers.engines.speech.family import Place, SoundLimits
from workers.engines.speech.job import Job
from workers.engines.speech.torched import Brake, prepare, read, read_weights, seed_of, sourced
from workers.engines.speech.track import Track, pcm_of

LONGEST_S = 30.0
"""What MusicGen was trained for; longer pieces lose their thread."""
MOST_TOKENS = 512
"""Of a prompt: what its T5 reads."""


class Watcher(StoppingCriteria):  # type: ignore[misc]  # its base is not typed
    """Looks after each step: ends a request that was stopped, counts the sound, and tells of each whole second."""

    def __init__(self, job: Job, seconds: float, frame_rate: float, delay: int) -> None:
        self._job = job
        self._seconds = seconds
        self._frame_rate = frame_rate
        self._steps = -delay  # the codebooks begin one after the other: the first frame is whole after so many steps
        self._told = 0

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Never stop: the number of steps is given."""
        self._job.check()
        self._steps += 1
        made_s = min(max(0, self._steps) / self._frame_rate, self._seconds)
        self._job.run.units.audio_ms = int(made_s * 1000)
        if int(made_s) > self._told:
            self._told = int(made_s)
            self._job.progress(made_s / self._seconds)
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


class MusicGen:
    """A loaded MusicGen. Stereo checkpoints are mixed down to one channel."""

    tasks: frozenset[Task] = frozenset({"music"})
    limits: SoundLimits | None = None

    def __init__(self, model: Any, tokenizer: Any, place: Place) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._longest_s = place.options.max_seconds or LONGEST_S
        self._brake = Brake(model)

    def check(self, given: Input) -> None:
        """Refuse what is longer than the model can."""
        assert isinstance(given, MusicInput)
        if music_seconds(given) > self._longest_s:
            raise RefusedInput(f"seconds: this model makes at most {self._longest_s:g} seconds.")

    def work(self, job: Job) -> MediaOutput:
        """Make exactly the length that is asked for."""
        given = job.run.input
        assert isinstance(given, MusicInput)
        model, seconds, seed = self._model, music_seconds(given), seed_of(given)
        prompt = self._tokenizer(given.prompt, return_tensors="pt")
        if prompt.input_ids.shape[1] > MOST_TOKENS:
            raise RefusedInput(f"prompt: it has more than the {MOST_TOKENS} tokens that the model reads: shorten it.")
        codec, delay = model.config.audio_encoder, model.config.decoder.num_codebooks - 1
        delay = delay if model.config.decoder.audio_channels == 1 else (delay + 1) // 2 - 1
        steps = math.ceil(seconds * codec.frame_rate) + delay
        track = Track(job, given.response_format or "mp3", int(codec.sampling_rate), int(seconds * 1000), music=True)
        with self._brake.forward(job, seed):
            made = model.generate(
                input_ids=prompt.input_ids.to(model.device),
                attention_mask=prompt.attention_mask.to(model.device),
                max_new_tokens=steps,
                stopping_criteria=StoppingCriteriaList([Watcher(job, seconds, codec.frame_rate, delay)]),
                **self._ways(given),
            )
            samples = made[0].float().mean(dim=0).cpu().numpy()
        job.run.units.audio_ms = 0  # from here on it is counted as it is encoded
        track.write(pcm_of(samples))
        return track.close(speech=False, seed=seed)

    def _ways(self, given: MusicInput) -> dict[str, Any]:
        """Say how to choose; what the caller leaves out is the checkpoint's own."""
        ways: dict[str, Any] = {}
        if given.guidance is not None:
            ways["guidance_scale"] = max(1.0, given.guidance)  # at 1 and below there is none
        if given.temperature is not None:
            ways |= {"do_sample": True, "temperature": given.temperature} if given.temperature else {"do_sample": False}
        return ways


def load(place: Place) -> MusicGen:
    """Load the model and its tokenizer."""
    source = sourced(place)
    prepare(place.options, source)
    tokenizer = read(AutoTokenizer, source, place.options)
    return MusicGen(read_weights(MusicgenForConditionalGeneration, source, place.options), tokenizer, place)
