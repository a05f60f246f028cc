"""From taken to ended: decode, run on the engine, store media, and hand the end to the outbox."""

import asyncio
from collections.abc import Collection, Sequence
from traceback import format_tb
from typing import Literal

import msgspec
import structlog

from gateway.contract.events import Ended, Frame, MediaOutput, Output, Started, TextOutput, VectorOutput
from gateway.contract.request import decode_input
from gateway.contract.states import Outcome, Reason
from gateway.queues.port import QueueUnavailable, Taken, WorkerSide
from workers.ends import end_of, end_unbegun, is_expected, queue_us, reason_of
from workers.engine import Engine, EngineError, EngineLost, Run
from workers.outbox import Outbox
from workers.outputs import Outputs, inline

log = structlog.get_logger()

Stop = Reason | Literal["lost", "given_back"]
"""Why a run is stopped. The last two leave no terminal event: another attempt will."""

_OUTCOMES: dict[Stop, Outcome] = {"deadline": "expired", "engine_lost": "failed"}
"""What a stopped run's outcome is; else it was cancelled."""


_OUTPUTS = (TextOutput, VectorOutput, MediaOutput)


class _Live:
    """A run that takes time: its task, the timer of its deadline, and why it is to stop."""

    __slots__ = ("run", "stop", "storing", "task", "timer")

    def __init__(self, run: Run, task: asyncio.Task[Output], timer: asyncio.TimerHandle | None = None) -> None:
        self.run = run
        self.task = task
        self.timer = timer
        self.stop: Stop | None = None
        self.storing = False


class Runner:
    """Runs what was taken. `held` are the requests under lease: running, or ended and not yet acknowledged."""

    def __init__(self, queue: WorkerSide, engine: Engine, outputs: Outputs, worker: str) -> None:
        self.outbox = Outbox(queue, self._acknowledged)
        self.held: dict[str, int] = {}
        """The attempt of each request under lease, by id."""
        self.models: Collection[str] = ()
        """The models that are ready."""
        self.freed = asyncio.Event()
        """Set whenever a request has ended."""
        self.engine_lost = asyncio.Event()
        self.unexpected_errors = 0
        self._queue = queue
        self._engine = engine
        self._outputs = outputs
        self._worker = worker
        self._live: dict[str, _Live] = {}

    @property
    def running(self) -> int:
        """How many requests run now."""
        return len(self._live)

    def start(self, taken: Taken) -> None:
        """Begin one request. What its engine has at once has ended when this returns; the rest gets a task."""
        request = taken.request
        earlier = self.held.get(request.id)
        if earlier is not None:  # its lease ran out unnoticed, and came back to this very worker
            self.stop(request.id, earlier, "lost")
        self.held[request.id] = taken.attempt
        if 0 < request.deadline_ms <= taken.taken_us // 1000:
            return self.outbox.end(end_unbegun(taken, self._worker, "expired", "deadline"))
        if request.model not in self.models:
            detail = f"The model {request.model} could not be loaded."
            return self.outbox.end(end_unbegun(taken, self._worker, "failed", "engine_error", detail))
        try:
            given = decode_input(request)
        except msgspec.DecodeError:
            detail = f"The input does not fit the task {request.task}."
            return self.outbox.end(end_unbegun(taken, self._worker, "failed", "refused_by_engine", detail))
        run = Run(request, given, taken.attempt, self.outbox.frame)
        run.phases.queue_us = queue_us(taken)
        if request.keep:
            self.outbox.frame(request, Frame(request.id, taken.attempt, -1, Started(self._worker)))
        try:
            answer = self._engine.run(run)
        except Exception as error:
            return self._fail(run, error)
        if isinstance(answer, _OUTPUTS):
            return self._succeed(run, answer)
        live = _Live(run, asyncio.get_running_loop().create_task(answer), self._deadline(taken))
        return self._follow(live)

    def _deadline(self, taken: Taken) -> asyncio.TimerHandle | None:
        """Count the time that is left from the taking, by the server's clock: a worker's own may be wrong."""
        request = taken.request
        if not request.deadline_ms:
            return None
        left_s = request.deadline_ms / 1e3 - taken.taken_us / 1e6
        return asyncio.get_running_loop().call_later(left_s, self.stop, request.id, taken.attempt, "deadline")

    def _follow(self, live: _Live) -> None:
        self._live[live.run.request.id] = live
        live.task.add_done_callback(lambda _: self._over(live))

    def stop(self, request_id: str, attempt: int, why: Stop) -> None:
        """Stop a run. One that has ended, or only stores its output, goes on to its end."""
        live = self._live.get(request_id)
        if live is not None and live.run.attempt == attempt and live.stop is None:
            live.stop = why
            if not live.storing:
                live.task.cancel()

    def stop_all(self, why: Stop) -> None:
        """Stop every run."""
        for live in list(self._live.values()):
            self.stop(live.run.request.id, live.run.attempt, why)

    def _over(self, live: _Live) -> None:
        run, task = live.run, live.task
        if self._live.get(run.request.id) is live:
            del self._live[run.request.id]
        if live.timer is not None:
            live.timer.cancel()
        error = EngineError("") if task.cancelled() else task.exception()
        if live.stop == "lost" or live.stop == "given_back":
            self._forget(run)
            self._outputs.discard(None if error else task.result())
        elif error is None:
            self._succeed(run, task.result())
        elif live.stop is not None:
            self.outbox.end(end_of(run, self._worker, _OUTCOMES.get(live.stop, "cancelled"), live.stop))
        else:
            self._fail(run, error)
        self.freed.set()

    def _forget(self, run: Run) -> None:
        if self.held.get(run.request.id) == run.attempt:
            del self.held[run.request.id]

    def _succeed(self, run: Run, output: Output) -> None:
        if isinstance(output, MediaOutput) and not output.blob and self._outputs.to_store(run.request, output):
            task: asyncio.Task[Output] = asyncio.get_running_loop().create_task(self._outputs.store(run, output))
            live = _Live(run, task)
            live.storing = True
            return self._follow(live)
        kept = inline(run.request, output)
        return self.outbox.end(end_of(run, self._worker, "succeeded", "done", output=kept))

    def _fail(self, run: Run, error: BaseException) -> None:
        reason, detail = reason_of(error)
        if isinstance(error, EngineLost):
            self.engine_lost.set()
        self.unexpected_errors += not is_expected(error)
        log.warning(
            "run.failed",
            request_id=run.request.id,
            attempt=run.attempt,
            model=run.request.model,
            reason=reason,
            error=type(error).__name__,
            unexpected_errors=self.unexpected_errors,
            at=None
            if is_expected(error)
            else format_tb(error.__traceback__),  # without its words: they may quote a prompt
        )
        self.outbox.end(end_of(run, self._worker, "failed", reason, detail=detail))

    def _acknowledged(self, ended: Sequence[Ended], fenced: set[str]) -> None:
        held = self.held
        for end in ended:
            if held.get(end.id) == end.attempt:
                del held[end.id]
            if end.id in fenced:
                self._outputs.discard(end.output)
        if fenced:
            log.warning("run.fenced", requests=sorted(fenced))
        self.freed.set()

    async def give_back(self) -> None:
        """Stop what the engine has not begun and return it to the queue; where that fails, its lease runs out."""
        waiting = [live for live in self._live.values() if not (live.run.forward_began or live.storing)]
        if not waiting:
            return
        for live in waiting:
            self.stop(live.run.request.id, live.run.attempt, "given_back")
        await asyncio.wait([live.task for live in waiting])
        stopped = [live.run.request.id for live in waiting if live.stop == "given_back"]
        try:
            await self._queue.give_back(stopped)
        except QueueUnavailable as error:
            log.warning("run.not_given_back", requests=len(stopped), error=str(error))

    async def drain(self, limit_s: float) -> None:
        """Let what runs come to its end for `limit_s`; what is left is stopped, and taken again after its lease."""
        until = asyncio.get_running_loop().time() + limit_s
        while self._live and (left_s := until - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait([live.task for live in self._live.values()], timeout=left_s)
            await asyncio.sleep(0)  # the callbacks of the tasks that ended
        if self._live:
            log.warning("run.abandoned", requests=sorted(self._live))
            stopped = [live.task for live in self._live.values()]
            self.stop_all("lost")
            await asyncio.wait(stopped)
            await asyncio.sleep(0)
        await self.outbox.emptied()
