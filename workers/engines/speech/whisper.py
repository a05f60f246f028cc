"""Speech to text by Whisper: windows of 30 s, each from where the sentence before was understood to its end."""

from typing import Any

import torch
from transformers import AutoFeatureExtractor, AutoTokenizer, WhisperForConditionalGeneration

from gateway.contract.events import Segment, TranscriptOutput
from gateway.contract.inputs import Input, Media, TranscriptionInput
from gateway.contract.tasks import Task
from workers.engine import EngineError, RefusedInput
from workers.engines.speech.family import Place, SoundLimits
from workers.engines.speech.job import Job
from workers.engines.speech.options import BadModel
from workers.engines.speech.sound import RATE, is_silent
from workers.engines.speech.torched import Brake, prepare, read, read_weights, seed_of, sourced
from workers.engines.speech.transcript import segment_of, words_of

LONGEST_S = 3_600.0
SHORTEST_S = 0.1
FRAME_MS = 10
WINDOW_S = 30
MOST_WINDOWS = 10
"""For each 30 s of sound: a model that goes on by less than 3 s at a time is given up."""
ENGLISH = "en"


class Whisper:
    """A loaded Whisper."""

    tasks: frozenset[Task] = frozenset({"speech-to-text"})

    def __init__(self, model: Any, tokenizer: Any, extractor: Any, place: Place) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._extractor = extractor
        self._options = place.options
        self._brake = Brake(model)
        settings = model.generation_config
        self._languages = {code.strip("<|>") for code in getattr(settings, "lang_to_id", None) or ()}
        self._aligns = getattr(settings, "alignment_heads", None) is not None
        self._text_ends = int(settings.eos_token_id if isinstance(settings.eos_token_id, int) else 0)
        self.limits = SoundLimits(least_s=SHORTEST_S, most_s=place.options.max_seconds or LONGEST_S, silence=True)

    def check(self, given: Input) -> None:
        """Refuse languages, translations and times that this checkpoint has not."""
        assert isinstance(given, TranscriptionInput)
        self._language(given)
        if given.translate and not self._languages:
            raise RefusedInput("translate: this model knows English only: leave it out.")
        if "word" in (given.timestamp_granularities or ()) and not self._aligns:
            raise RefusedInput("timestamp_granularities: this model cannot tell when each word was said.")

    def work(self, job: Job) -> TranscriptOutput:
        """Transcribe, or translate into English. Counts the sound that was heard, silence included."""
        given = job.run.input
        assert isinstance(given, TranscriptionInput)
        length_ms = len(job.sound) * 1000 // RATE
        most_ms = given.file.duration_ms if isinstance(given.file, Media) else 0
        language = self._language(given)
        if is_silent(job.sound):  # a model of this kind would invent something
            job.run.units.audio_ms = min(length_ms, most_ms)
            return TranscriptOutput("", language or "", length_ms)
        inputs = self._features(job)
        with self._brake.forward(job, seed_of(given)):
            if language is None and self._languages:
                language = self._detect(inputs["input_features"])
            heard = self._hear(job, given, inputs, language, min(length_ms, most_ms))
        job.run.units.audio_ms = min(length_ms, most_ms)
        return self._transcript(given, heard, language or ENGLISH, length_ms)

    def _features(self, job: Job) -> dict[str, Any]:
        """Make the spectrogram, just as long as the sound: in padding a model hears what nobody said."""
        made = self._extractor(
            job.sound,
            sampling_rate=RATE,
            return_tensors="pt",
            return_attention_mask=True,
            truncation=False,
            padding="longest",
        )
        device, dtype = self._model.device, self._model.dtype
        return {
            "input_features": made.input_features.to(device, dtype),
            "attention_mask": made.attention_mask.to(device),
        }

    def _detect(self, features: Any) -> str:
        codes = {number: code for code, number in self._model.generation_config.lang_to_id.items()}
        window = WINDOW_S * 100
        first = torch.nn.functional.pad(features[:, :, :window], (0, max(0, window - features.shape[-1])))
        found = self._model.detect_language(first)
        return str(codes[int(found[0])]).strip("<|>")

    def _hear(
        self, job: Job, given: TranscriptionInput, inputs: dict[str, Any], language: str | None, length_ms: int
    ) -> list[Any]:
        """Run the model over all windows; gives the segments as it makes them."""
        windows = 0
        most = MOST_WINDOWS * (1 + inputs["input_features"].shape[-1] // (WINDOW_S * 100))

        def told(at: Any) -> None:
            nonlocal windows
            windows += 1
            if windows > most:
                raise EngineError("The model did not come to an end with this sound.")
            job.check()
            heard_ms = min(int(at[0, 0]) * FRAME_MS, length_ms)
            job.run.units.audio_ms = heard_ms
            if heard_ms:
                job.progress(heard_ms / length_ms)

        temperature = given.temperature or 0.0
        ways: dict[str, Any] = {}
        if self._languages:
            ways = {"language": language, "task": "translate" if given.translate else "transcribe"}
        if given.prompt:
            ways["prompt_ids"] = self._prompt(given.prompt)
        made = self._model.generate(
            **inputs,
            **ways,
            return_timestamps=True,
            return_segments=True,
            return_token_timestamps="word" in (given.timestamp_granularities or ()),
            temperature=temperature,
            do_sample=temperature > 0,
            condition_on_prev_tokens=False,
            monitor_progress=told,
        )
        return list(made["segments"][0])

    def _prompt(self, prompt: str) -> Any:
        try:
            ids = self._tokenizer.get_prompt_ids(prompt, return_tensors="pt")
        except ValueError:
            raise RefusedInput("prompt: it contains marks that only the model itself may use.") from None
        most = int(self._model.config.max_target_positions) // 2 - 1
        kept = ids if len(ids) <= most else torch.cat((ids[:1], ids[len(ids) - most + 1 :]))  # its end counts most
        return kept.to(self._model.device)

    def _transcript(
        self, given: TranscriptionInput, heard: list[Any], language: str, length_ms: int
    ) -> TranscriptOutput:
        segments: list[Segment] = []
        words: list[Segment] = []
        for piece in heard:
            said = [(at, token) for at, token in enumerate(piece["tokens"].tolist()) if token < self._text_ends]
            tokens = [token for _, token in said]
            segment = segment_of(self._decode(tokens), float(piece["start"]), float(piece["end"]), length_ms)
            if segment is None:
                continue
            segments.append(segment)
            if "word" in (given.timestamp_granularities or ()):
                times = piece["token_timestamps"].tolist()
                words += words_of(tokens, [times[at] for at, _ in said], self._decode, language, length_ms)
        text = " ".join(segment.text for segment in segments)
        spoken = ENGLISH if given.translate else language
        return TranscriptOutput(text, spoken, length_ms, segments, words)

    def _decode(self, tokens: Any) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))

    def _language(self, given: TranscriptionInput) -> str | None:
        """Give the code of the language that is asked for, None to find it out. Raises RefusedInput."""
        asked = given.language or self._options.language
        if asked is None:
            return None
        code = asked.lower().partition("-")[0]
        known = self._languages or {ENGLISH}
        if code not in known:
            raise RefusedInput(f"language: this model does not know {asked!r}: say {', '.join(sorted(known))}.")
        return code


def load(place: Place) -> Whisper:
    """Load the model, its tokenizer and its feature extractor. Raises BadModel where its rate is another."""
    source, options = sourced(place), place.options
    prepare(options, source)
    extractor = read(AutoFeatureExtractor, source, options)
    if int(extractor.sampling_rate) != RATE:
        raise BadModel(f"it hears {extractor.sampling_rate} Hz, and only {RATE} Hz are served")
    tokenizer = read(AutoTokenizer, source, options)
    return Whisper(read_weights(WhisperForConditionalGeneration, source, options), tokenizer, extractor, place)
