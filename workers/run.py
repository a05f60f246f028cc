"""From taken to ended: decode, run on the engine, store media, and hand the end to the outbox."""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from traceback import format_tb
from typing import Any, Literal, cast, get_args

import msgspec
import structlog

from gateway.contract.events import Ended, Frame, Output, Started
from gateway.contract.request import Request, decode_input
from gateway.contract.states import Outcome, Reason
from gateway.queues.port import Move, QueueUnavailable, Taken, WorkerSide
from workers.ends import Place, end_of, end_unbegun, is_expected, is_final, onward, queue_us, reason_of
from workers.engine import Concluding, Engine, EngineError, EngineLost, Run
from workers.outbox import Outbox
from workers.outputs import Outputs, inline
from workers.share import Shares

log = structlog.get_logger()

Stop = Reason | Literal["lost", "given_back"]
"""Why a run is stopped. The last two leave no terminal event: another attempt will."""

_OUTCOMES: dict[Stop, Outcome] = {"deadline": "expired", "engine_lost": "failed"}
"""What a stopped run's outcome is; else it was cancelled."""


_OUTPUTS = get_args(Output)


class _Live:
    """A run that takes time: its task, the timer of its deadline, and why it is to stop."""

    __slots__ = ("began", "run", "stop", "storing", "task", "timer")

    def __init__(self, run: Run, task: asyncio.Task[Output], timer: asyncio.TimerHandle | None = None) -> None:
        self.run = run
        self.task = task
        self.timer = timer
        self.stop: Stop | None = None
        self.storing = False
        self.began = 0.0
        """What the clock of the worker's shares showed when it began."""


class Runner:
    """Runs what was taken. `held` are the requests under lease: running, or ended and not yet acknowledged.

    What fails before its caller has heard anything goes on in its next leg, where one is left.
    """

    def __init__(self, queue: WorkerSide, engine: Engine, outputs: Outputs, place: Place) -> None:
        self.outbox = Outbox(queue, self._acknowledged, self._handed_over)
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
        self._concluding = engine if isinstance(engine, Concluding) else None
        self._outputs = outputs
        self._place = place
        self._live: dict[str, _Live] = {}
        self._shares = Shares()

    @property
    def running(self) -> int:
        """How many requests run now."""
        return len(self._live)

    @property
    def busy_ms(self) -> int:
        """How long one request or more ran so far."""
        return self._shares.busy_ms

    def start(self, taken: Taken) -> None:
        """Begin one request. What its engine has at once has ended when this returns; the rest gets a task."""
        request = taken.request
        earlier = self.held.get(request.id)
        if earlier is not None:  # its lease ran out unnoticed, and came back to this very worker
            self.stop(request.id, earlier, "lost")
        self.held[request.id] = taken.attempt
        if 0 < request.deadline_ms <= taken.taken_us // 1000:
            return self.outbox.end(end_unbegun(taken, self._place, "expired", "deadline"))
        if request.model not in self.models:
            detail = f"The model {request.model} could not be loaded."
            return self._give_up(request, end_unbegun(taken, self._place, "failed", "engine_error", detail))
        try:
            given = decode_input(request)
        except msgspec.DecodeError:
            detail = f"The input does not fit the task {request.task}."
            return self.outbox.end(end_unbegun(taken, self._place, "failed", "refused_by_engine", detail))
        run = Run(request, given, taken.attempt, self.outbox.frame, self._outputs.read)
        began = self._shares.begin()
        run.phases.queue_us = queue_us(taken)
        if request.keep:
            self.outbox.frame(request, Frame(request.id, taken.attempt, -1, Started(self._place.worker)))
        try:
            answer = self._engine.run(run)
        except Exception as error:
            run.gpu_us = self._shares.end(began)
            return self._fail(run, error)
        if isinstance(answer, _OUTPUTS):
            run.gpu_us = self._shares.end(began)
            return self._succeed(run, cast(Output, answer))
        coroutine = cast("Coroutine[Any, Any, Output]", answer)
        live = _Live(run, asyncio.get_running_loop().create_task(coroutine), self._deadline(taken))
        live.began = began
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
            live.stop = live.run.stopped = why
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
        if not live.storing:
            run.gpu_us = self._shares.end(live.began)
        error = EngineError("") if task.cancelled() else task.exception()
        if live.stop == "lost" or live.stop == "given_back":
            self._forget(run)
            self._outputs.discard(run.request.id, run.attempt, None if error else task.result())
        elif error is None:
            self._succeed(run, task.result())
        elif live.stop == "engine_lost" and not run.deltas:
            self._give_up(run.request, end_of(run, self._place, "failed", "engine_lost"))
        elif live.stop is not None:
            self.outbox.end(end_of(run, self._place, _OUTCOMES.get(live.stop, "cancelled"), live.stop))
        else:
            self._fail(run, error)
        self.freed.set()

    def _forget(self, run: Run) -> None:
        if self.held.get(run.request.id) == run.attempt:
            del self.held[run.request.id]

    def _succeed(self, run: Run, output: Output) -> None:
        if self._outputs.to_store(run.request, output):
            task: asyncio.Task[Output] = asyncio.get_running_loop().create_task(self._outputs.store(run, output))
            live = _Live(run, task)
            live.storing = True
            return self._follow(live)
        kept = inline(run.request, output)
        return self.outbox.end(end_of(run, self._place, "succeeded", "done", output=kept))

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
        end = end_of(run, self._place, "failed", reason, detail=detail)
        if run.deltas or is_final(error):
            return self.outbox.end(end)
        return self._give_up(run.request, end)

    def _give_up(self, request: Request, end: Ended) -> None:
        """Let the next leg go on with a request that failed here; where none is left, this is its end."""
        if request.legs:
            self.outbox.move(onward(request, end, self._place.pool))
        else:
            self.outbox.end(end)

    def _handed_over(self, moves: Sequence[Move], fenced: set[str]) -> None:
        for move in moves:
            request_id = move.request.id
            if self.held.get(request_id) == move.attempt:
                del self.held[request_id]
            if self._concluding is not None:
                self._concluding.concluded(request_id, move.attempt, fenced=request_id in fenced)
            if request_id not in fenced:
                log.info("run.handed_over", request_id=request_id, attempt=move.attempt, to=move.pool)
        if fenced:
            log.warning("run.fenced", requests=sorted(fenced))
        self.freed.set()

    def _acknowledged(self, ended: Sequence[Ended], fenced: set[str]) -> None:
        held = self.held
        for end in ended:
            if held.get(end.id) == end.attempt:
                del held[end.id]
            if end.id in fenced:
                self._outputs.discard(end.id, end.attempt, end.output)
            if self._concluding is not None:
                self._concluding.concluded(end.id, end.attempt, fenced=end.id in fenced)
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
