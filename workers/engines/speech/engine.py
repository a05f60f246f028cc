"""The engine `speech`: whatever speaks, sings or listens, one computation at a time."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import av

from gateway.contract.events import Output
from gateway.contract.inputs import Media, TranscriptionInput, VoiceCloneInput
from gateway.contract.pools import ModelState, ServedModel
from workers.engine import EngineError, RefusedInput, Report, Run
from workers.engines.speech.families import load_model
from workers.engines.speech.family import Loaded, SoundLimits
from workers.engines.speech.job import Job, Stopped
from workers.engines.speech.options import options_of
from workers.engines.speech.sound import decode

LOAD_ERRORS = (ImportError, OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError)
"""What transformers raises over a folder that does not fit: only this model fails."""


class SpeechEngine:
    """Loads all models of its pool at the start, in one thread, in which they then compute one after the other.

    Their memory adds up. While one request computes, those beyond it (option `concurrency`, the least of the models')
    are read and decoded; what they wait for the thread is counted as queue.
    """

    def __init__(self, models_dir: Path) -> None:
        self._models_dir = models_dir
        self._models: dict[str, Loaded] = {}
        self._concurrency: list[int] = []
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="speech")
        self._running = 0

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Load each model; one that fails does not stop the others."""
        loop = asyncio.get_running_loop()
        for model in models:
            report(model.name, ModelState(state="loading"))
            try:
                loaded = await loop.run_in_executor(self._thread, load_model, model, self._models_dir)
            except LOAD_ERRORS as error:
                report(model.name, ModelState(state="failed", detail=_in_short(error)))
                continue
            self._models[model.name] = loaded
            self._concurrency.append(options_of(model).concurrency)
            report(model.name, ModelState(state="ready"))

    def capacity(self) -> int:
        """Say how many more requests could start now, whichever model they are for."""
        return max(0, min(self._concurrency, default=0) - self._running)

    def failure(self) -> Exception | None:
        """Never dead: a fault inside a library ends the whole process."""
        return None

    async def unload(self) -> None:
        """Stop the thread and let go of the models."""
        self._models.clear()
        await asyncio.to_thread(self._thread.shutdown)

    async def run(self, run: Run) -> Output:
        """Execute one request; when cancelled, wait until its thread has stopped, which is within one step."""
        model = self._models[run.request.model]
        if run.request.task not in model.tasks:
            can = ", ".join(sorted(model.tasks))
            raise RefusedInput(f"The model {run.request.model} does no {run.request.task}; it does {can}.")
        model.check(run.input)
        self._running += 1
        try:
            return await self._follow(run, model)
        finally:
            self._running -= 1

    async def _follow(self, run: Run, model: Loaded) -> Output:
        field, source = _sound_of(run)
        data = await run.read(source) if isinstance(source, Media) else b""
        job = Job(run)
        if isinstance(source, Media) and model.limits is not None:
            await self._decode(job, field, data, source.media_type, model.limits)
        job.enter("queue")
        future = self._thread.submit(_work, model, job)
        try:
            output = await asyncio.shield(asyncio.wrap_future(future))
        except asyncio.CancelledError:
            job.stopped = True
            if not future.cancel():
                await asyncio.wait([asyncio.wrap_future(future)])
            raise
        finally:
            job.enter("postprocess")
        if output is None:
            raise EngineError("The request was stopped.")
        return output

    async def _decode(self, job: Job, field: str, data: bytes, media_type: str, limits: SoundLimits) -> None:
        """Decode the sound that came with the request, beside the thread that computes for another."""
        decoding = asyncio.ensure_future(
            asyncio.to_thread(decode, data, media_type, field=field, limits=limits, check=job.check)
        )
        try:
            job.sound = await asyncio.shield(decoding)
        except asyncio.CancelledError:
            job.stopped = True
            await asyncio.wait([decoding])
            decoding.exception()
            raise


def _sound_of(run: Run) -> tuple[str, object]:
    """Give the sound of an input, and the name of its field."""
    given = run.input
    if isinstance(given, VoiceCloneInput):
        return "sample", given.sample
    if isinstance(given, TranscriptionInput):
        return "file", given.file
    return "", None


def _work(model: Loaded, job: Job) -> Output | None:
    """Run a request in the thread; None where it was stopped."""
    job.enter("preprocess")
    try:
        job.check()
        output = model.work(job)
    except Stopped:
        return None
    except av.FFmpegError as error:
        raise EngineError("The sound could not be encoded.") from error
    job.enter("postprocess")
    return output


def _in_short(error: Exception) -> str:
    """Say in a line why a model does not load."""
    if isinstance(error, ModuleNotFoundError):
        return f"this model needs {error.name}, which is not installed: install the extra diffusers"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3])[:500] or type(error).__name__
