"""The engine `fake`: deterministic words, vectors and media, paced and broken as told."""

import asyncio
import os
import signal
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from gateway.contract.events import Output, RankingOutput, TextOutput, VectorOutput
from gateway.contract.inputs import ChatInput, CompletionInput, EmbeddingInput, Input, RerankInput
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.tasks import Task
from workers.engine import EngineError, EngineLost, RefusedInput, Report, Run
from workers.engines.fake.conduct import Conduct, asked, usual
from workers.engines.fake.embed import embed, texts_of
from workers.engines.fake.options import FakeOptions, read_options
from workers.engines.fake.pacer import Pacer, Stream
from workers.engines.fake.ranking import rank
from workers.engines.fake.script import Script, prompt_of, script_of

if TYPE_CHECKING:
    from workers.engines.fake.media import Maker

AT_ONCE: frozenset[Task] = frozenset({"chat", "completion", "embedding", "rerank"})
"""The tasks that need no package but Python's own."""


class _Model:
    """A loaded model, and how many requests of it run."""

    __slots__ = ("conduct", "interval_s", "options", "running")

    def __init__(self, options: FakeOptions) -> None:
        self.options = options
        self.conduct = usual(options)
        self.interval_s = options.interval_ms / 1000
        self.running = 0


class FakeEngine:
    """Does every task without a model.

    Models of one pool share its queue, so `capacity` is that of the fullest of them: give a model of small
    capacity a pool of its own.
    """

    def __init__(self, models_dir: Path) -> None:
        self._models: dict[str, _Model] = {}
        self._pacer = Pacer()
        self._failure: EngineLost | None = None
        self._makers: dict[type[Input], Maker] = {}

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Read the options of each model."""
        for model in models:
            try:
                self._models[model.name] = _Model(read_options(model.options))
                if not AT_ONCE.issuperset(model.tasks):
                    self._need_media()
            except (msgspec.ValidationError, ImportError) as error:
                report(model.name, ModelState(state="failed", detail=str(error)))
            else:
                report(model.name, ModelState(state="ready"))

    def _need_media(self) -> None:
        """Import what makes media. Raises ImportError where Pillow or PyAV is not installed."""
        from workers.engines.fake.media import MAKERS

        self._makers = MAKERS

    def capacity(self) -> int:
        """Say how many requests of any model could start now."""
        return min((model.options.capacity - model.running for model in self._models.values()), default=0)

    def failure(self) -> Exception | None:
        """Say that the engine was lost on purpose."""
        return self._failure

    async def unload(self) -> None:
        """Forget the models."""
        self._models.clear()

    def run(self, run: Run) -> Output | Coroutine[Any, Any, Output]:
        """Answer at once where nothing is to be waited for, else at the model's pace."""
        model = self._models[run.request.model]
        given = run.input
        if isinstance(given, EmbeddingInput):
            return self._embed(run, model, given)
        if isinstance(given, RerankInput):
            return self._rank(run, model, given)
        if not isinstance(given, ChatInput | CompletionInput):
            return self._make(run, model)
        prompt = prompt_of(given)
        run.units.input_tokens = len(prompt.split())
        conduct = self._conduct(run, model, prompt)
        script = script_of(given, conduct.tokens)
        if conduct.wait_s or model.interval_s or conduct.fault == "hang":
            return self._paced(run, model, conduct, script)
        return self._at_once(run, script)

    def _conduct(self, run: Run, model: _Model, prompt: str, *, waits: bool = True) -> Conduct:
        """Say how this attempt is to go; what goes wrong at once goes wrong here. One that waits fails afterwards."""
        conduct = model.conduct
        if "fake:" in prompt:
            conduct = asked(prompt, run.attempt, conduct)
        if conduct.freeze_s:
            time.sleep(conduct.freeze_s)
        late = conduct.fault == "hang" or (conduct.fault == "fail" and waits and conduct.wait_s > 0)
        if conduct.fault != "none" and not late:
            self._break(conduct)
        return conduct

    def _break(self, conduct: Conduct) -> NoReturn:
        match conduct.fault:
            case "refuse":
                raise RefusedInput("The fake engine was told to refuse this.")
            case "lose":
                self._failure = EngineLost("told to be lost")
                raise self._failure
            case "crash":
                os.kill(os.getpid(), signal.SIGKILL)
        raise EngineError("The fake engine was told to fail.")

    def _at_once(self, run: Run, script: Script) -> TextOutput:
        began = time.perf_counter_ns()
        run.began()
        if run.watched:
            for choice in script.deltas:
                for delta in choice:
                    run.emit(delta)
        run.units.output_tokens = script.tokens
        run.phases.forward_us = (time.perf_counter_ns() - began) // 1000
        return script.output

    async def _paced(self, run: Run, model: _Model, conduct: Conduct, script: Script) -> TextOutput:
        began = time.perf_counter_ns()
        model.running += 1
        run.began()
        try:
            if conduct.fault == "hang":
                await asyncio.get_running_loop().create_future()
            if conduct.wait_s:
                await asyncio.sleep(conduct.wait_s)
            if conduct.fault == "fail":
                self._break(conduct)
            if not model.interval_s:
                return self._at_once(run, script)
            await self._pacer.play(Stream(run, script.deltas, model.interval_s))
            return script.output
        finally:
            model.running -= 1
            run.phases.forward_us = (time.perf_counter_ns() - began) // 1000

    def _embed(self, run: Run, model: _Model, given: EmbeddingInput) -> VectorOutput:
        began = time.perf_counter_ns()
        run.began()
        output = embed(given, model.options.dimensions)
        run.units.input_tokens = sum(len(text.split()) for text in texts_of(given))
        run.phases.forward_us = (time.perf_counter_ns() - began) // 1000
        return output

    def _rank(self, run: Run, model: _Model, given: RerankInput) -> RankingOutput:
        self._conduct(run, model, given.query, waits=False)
        return rank(run, given)

    async def _make(self, run: Run, model: _Model) -> Output:
        """Make media, in steps at the model's pace."""
        maker = self._makers.get(type(run.input))
        if maker is None:
            raise RefusedInput(f"The fake engine does no {run.request.task}: call a model of a real engine.")
        conduct = self._conduct(run, model, words_of(run.input))
        model.running += 1
        try:
            if conduct.fault == "hang":
                run.began()
                await asyncio.get_running_loop().create_future()
            if conduct.wait_s:
                run.began()
                with run.phases.timed("forward"):
                    await asyncio.sleep(conduct.wait_s)
            if conduct.fault == "fail":
                self._break(conduct)
            return await maker(run, model.options)
        finally:
            model.running -= 1


def words_of(given: Input) -> str:
    """Give the words of a media input, where faults may be asked for."""
    words = (getattr(given, name, None) for name in ("prompt", "input", "text"))
    return " ".join(word for word in words if isinstance(word, str))
