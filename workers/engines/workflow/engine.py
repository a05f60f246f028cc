"""The engine `workflow`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import structlog

from gateway.contract.events import Ended, Output
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.states import Reason
from gateway.queues.port import GatewaySide
from workers.engine import Discard, EngineError, Report, Run
from workers.engines.workflow.ask import Ask
from workers.engines.workflow.course import Course, Means, Stopped
from workers.engines.workflow.local import need_media
from workers.engines.workflow.options import Graph, read_options
from workers.engines.workflow.stream import tell

log = structlog.get_logger()

MOST_AT_ONCE = 256
"""Runs of one worker: most of them wait for others."""
STOPPED_S = 60.0
"""How long the end of a step that was stopped is waited for, to remove what it made after all."""
UNLOAD_S = 3.0

Left = tuple[str, int, Output]


class WorkflowEngine:
    """Runs graphs of other models. It has no model of its own, and takes as many requests as it can wait for."""

    def __init__(self, models_dir: Path) -> None:
        self._graphs: dict[str, Graph] = {}
        self._running = 0
        self._means: Means | None = None
        self._discard: Discard | None = None
        self._left: dict[tuple[str, int], list[Left]] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def attach(
        self,
        queue: Callable[[str], GatewaySide],
        store: Callable[[Run, Output], Awaitable[Output]],
        discard: Discard,
    ) -> None:
        """Be told the way to the queues of other pools, and to the blob store."""
        self._means = Means(queue, store, self._stop)
        self._discard = discard

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Read the graph of each model."""
        for model in models:
            try:
                graph = read_options(model.options)
                if any(node.step.do for node in graph.nodes.values()):
                    need_media()
            except (ValueError, ImportError) as error:
                report(model.name, ModelState(state="failed", detail=str(error)))
            else:
                self._graphs[model.name] = graph
                report(model.name, ModelState(state="ready"))

    def capacity(self) -> int:
        """Say how many more requests could start now."""
        return MOST_AT_ONCE - self._running

    def failure(self) -> Exception | None:
        """Say that there is nothing here which could die."""
        return None

    async def run(self, run: Run) -> Output:
        """Run the graph. Raises EngineError or RefusedInput that names the step which failed."""
        if self._means is None:
            raise EngineError("This worker has no way to the queues of other pools.")
        course = Course(run, self._graphs[run.request.model], self._means)
        self._running += 1
        try:
            output = await course.follow()
            tell(run, output)
            return output
        finally:
            self._running -= 1
            if run.stopped not in ("lost", "given_back"):
                self._left[run.request.id, run.attempt] = course.left

    def concluded(self, request_id: str, attempt: int, *, fenced: bool) -> None:
        """Remove what the steps of a request left, once its end stands; where it was fenced, its successor needs it."""
        for step_id, number, output in self._left.pop((request_id, attempt), []):
            if not fenced and self._discard is not None:
                self._discard(step_id, number, output)

    def _stop(self, ask: Ask, reason: Reason, stopped: Stopped) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(self._end(ask, reason, stopped))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
        return task

    async def _end(self, ask: Ask, reason: Reason, stopped: Stopped) -> None:
        """Stop a step, and remove what it made if it was quicker."""
        end: Ended | None = None
        try:
            async with asyncio.timeout(STOPPED_S):
                end = await ask.stop(reason)
        except TimeoutError:
            log.warning("workflow.step_goes_on", request_id=ask.id, pool=ask.pool)
        if end is not None:
            stopped(end)
            if self._discard is not None:
                self._discard(end.id, end.attempt, end.output)

    async def unload(self) -> None:
        """Wait a moment for the ends of steps that were stopped."""
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=UNLOAD_S)
        self._graphs.clear()
