"""The engine `speech`: text to speech by espeak-ng, one voice at a time."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import av
import msgspec

from gateway.contract.events import AudioDelta, MediaOutput
from gateway.contract.inputs import SpeechInput
from gateway.contract.pools import ModelState, ServedModel
from workers.engine import EngineError, RefusedInput, Report, Run
from workers.engines.speech.job import Job
from workers.engines.speech.library import Espeak, EspeakError
from workers.engines.speech.voices import Voices


class SpeechOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a catalog entry may set for a model of the engine `speech`."""

    voice: str | None = None
    """The voice where a caller names none."""


class SpeechEngine:
    """Speaks in a thread. espeak-ng has one voice in a process, so one request runs at a time: add workers for more.

    `instructions` are not followed: espeak-ng has no moods.
    """

    def __init__(self, models_dir: Path) -> None:
        self._models: dict[str, SpeechOptions] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="espeak")
        self._espeak: Espeak | None = None
        self._voices = Voices([], [])
        self._running = 0

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Start espeak-ng and check the options of each model."""
        try:
            self._espeak = await asyncio.get_running_loop().run_in_executor(self._thread, Espeak)
        except (EspeakError, OSError) as error:
            for model in models:
                report(model.name, ModelState(state="failed", detail=str(error)))
            return
        self._voices = Voices(self._espeak.speakers(), self._espeak.variants())
        for model in models:
            try:
                options = msgspec.convert(model.options, SpeechOptions)
                self._voices.resolve(options.voice, None)
            except (msgspec.ValidationError, RefusedInput) as error:
                report(model.name, ModelState(state="failed", detail=str(error)))
            else:
                self._models[model.name] = options
                report(model.name, ModelState(state="ready"))

    def capacity(self) -> int:
        """Say whether a request could start now: the library speaks one at a time."""
        return max(0, 1 - self._running)

    def failure(self) -> Exception | None:
        """Never dead: a fault inside the library ends the whole process."""
        return None

    async def unload(self) -> None:
        """Stop the thread."""
        self._thread.shutdown()

    async def run(self, run: Run) -> MediaOutput:
        """Speak; when cancelled, wait the few milliseconds until the thread has stopped."""
        given, espeak = run.input, self._espeak
        if not isinstance(given, SpeechInput) or espeak is None:
            raise RefusedInput("This engine speaks and does nothing else: call it for text-to-speech.")
        voice = self._voices.resolve(given.voice or self._models[run.request.model].voice, given.language)
        loop = asyncio.get_running_loop()

        def send(data: bytes) -> None:
            loop.call_soon_threadsafe(run.emit, AudioDelta(data))

        job = Job(run, given, voice, send if run.heard else None)
        self._running += 1
        run.began()
        working = loop.run_in_executor(self._thread, partial(job.work, espeak))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            job.stopped = True
            await asyncio.wait([working])
            raise
        except (EspeakError, av.FFmpegError) as error:
            raise EngineError("The speech could not be made.") from error
        finally:
            self._running -= 1
