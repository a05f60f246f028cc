"""One run of a workflow: a step starts when its output is needed, and all that can run at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from gateway.contract.events import Ended, GalleryOutput, MediaOutput, Output, media_of
from gateway.contract.inputs import Media
from gateway.contract.request import encode_input
from gateway.contract.states import REASONS, Reason
from gateway.contract.workflow import INPUT, Lookup, Reference, lookups_in
from gateway.queues.port import GatewaySide
from workers.engine import EngineError, RefusedInput, Run
from workers.engines.workflow.account import Account
from workers.engines.workflow.ask import Ask, step_id
from workers.engines.workflow.clock import Clock
from workers.engines.workflow.local import do_locally, media_in
from workers.engines.workflow.options import Graph, Node
from workers.engines.workflow.values import as_media, fill, of_input, of_output

STOP_S = 1.0
"""How long a stopped run waits for the ends of its steps, to tell what they have cost."""
EXPIRY_S = 5.0
"""How long a step that has expired leaves it to its workflow's own timer to say so."""
MEMORY = "memory:"

Stopped = Callable[[Ended], None]


class Means(msgspec.Struct, frozen=True):
    """What runs are given to work with."""

    queue: Callable[[str], GatewaySide]
    """The queue of a pool."""
    store: Callable[[Run, Output], Awaitable[Output]]
    """Puts media into the blob store."""
    stop: Callable[[Ask, Reason, Stopped], "asyncio.Task[None]"]
    """Stops a step in the background, says how it ended, and removes what it made."""


class Course:
    """One run, from its input to its output."""

    def __init__(self, run: Run, graph: Graph, means: Means) -> None:
        self._run = run
        self._graph = graph
        self._means = means
        self._clock = Clock(run.phases)
        self._group = asyncio.TaskGroup()
        self._steps: dict[str, asyncio.Task[Output]] = {}
        self._memory: dict[str, bytes] = {}
        self._account = Account(run, graph)
        self.left: list[tuple[str, int, Output]] = []
        """What steps left in the blob store: request id, attempt, output."""

    async def follow(self) -> Output:
        """Run to the end. Raises EngineError or RefusedInput that names the step which failed."""
        try:
            async with self._group:
                last = self._start(self._graph.output)
            return await self._own(last.result())
        except ExceptionGroup as failures:
            raise _first(failures) from None
        finally:
            self._account.close()
            self._clock.tally()

    def _start(self, name: str) -> "asyncio.Task[Output]":
        """Start a step, once."""
        task = self._steps.get(name)
        if task is None:
            task = self._steps[name] = self._group.create_task(self._step(self._graph.nodes[name]))
        return task

    async def _step(self, node: Node) -> Output:
        for lookup in lookups_in(node.template):
            self._foresee(lookup)
        plain = await fill(node.template, self._find)
        try:
            given = msgspec.convert(plain, node.input_type)
        except msgspec.ValidationError as error:
            raise RefusedInput(f"Step {node.title}: {error}") from None
        output = await (self._ask(node, given) if node.step.model else self._do(node, given))
        self._account.advance(node, 1.0)
        return output

    def _foresee(self, lookup: Lookup) -> None:
        """Start the step that a lookup will most likely wait for, beside those of the others."""
        for reference in lookup.among:
            if reference.source != INPUT:
                self._start(reference.source)
                return
            if of_input(self._run.input, reference.path) is not None:
                return

    async def _find(self, reference: Reference) -> Any:
        if reference.source == INPUT:
            return of_input(self._run.input, reference.path)
        return of_output(await self._start(reference.source), reference.path[0])

    async def _ask(self, node: Node, given: Any) -> Output:
        """Have a step's model do it. Raises EngineError or RefusedInput."""
        with self._clock.during("forward"):
            ask, end = await self._asked(node, encode_input(given))
            if end.outcome == "expired":
                await asyncio.sleep(EXPIRY_S)
        self._account.note(node, ask, end)
        if end.outcome != "succeeded" or end.output is None:
            raise _failure(node, end)
        self.left.append((end.id, end.attempt, end.output))
        return end.output

    async def _asked(self, node: Node, packed: bytes) -> tuple[Ask, Ended]:
        """Take over what an earlier attempt has of this step, else ask for it; stop it where the run is stopped."""
        run = self._run
        for number in (*range(run.attempt - 1, 0, -1), run.attempt):
            ask = Ask(self._means.queue, run.request, node, number, packed)
            if number != run.attempt and not await ask.found():
                continue
            try:
                end = await ask.follow(lambda event: self._account.hear(node, event))
            except asyncio.CancelledError:
                if run.stopped not in ("lost", "given_back"):
                    await self._stop(node, ask)
                raise
            if end.outcome == "succeeded":
                break
        return ask, end

    async def _do(self, node: Node, given: Any) -> Output:
        """Do a step here."""
        with self._clock.during("transfer"):
            files = {media.blob: await self._read(media) for media in media_in(given)}
        with self._clock.during("postprocess"):
            try:
                made = await do_locally(given, files)
            except RefusedInput as error:
                raise RefusedInput(f"Step {node.title}: {error}") from None
        if node.name == self._graph.output:
            self._account.measure(made)
            stills = self._stills(node)
            return GalleryOutput([made, *stills]) if stills else made
        if node.name not in self._graph.stored:
            blob = MEMORY + node.name
            self._memory[blob] = made.data
            return msgspec.structs.replace(made, data=b"", blob=blob)
        return await self._stored(node, made)

    async def _stored(self, node: Node, made: MediaOutput) -> Output:
        """Put into the blob store what another step's model is to read, under a name of its own."""
        run = self._run
        request = msgspec.structs.replace(run.request, id=step_id(run.request, run.attempt, node, b""))
        with self._clock.during("transfer"):
            output = await self._means.store(Run(request, run.input, run.attempt, run.sink), made)
        self.left.append((request.id, run.attempt, output))
        return output

    def _stills(self, node: Node) -> list[MediaOutput]:
        """Give the thumbnails of the video that a local step has worked on: they stand for its own as well."""
        sources = {one.source for lookup in lookups_in(node.template.get("video")) for one in lookup.among}
        tasks = [task for name, task in self._steps.items() if name in sources and task.done()]
        return [item for task in tasks for item in media_of(task.result()) if item.role]

    async def _read(self, media: Media) -> bytes:
        held = self._memory.get(media.blob)
        if held is not None:
            return held
        if self._run.reader is None:
            raise EngineError("A media input was not staged.")
        return await self._run.reader(media)

    async def _own(self, output: Output) -> Output:
        """Give an output whose files are this run's: those of steps are read, for the worker to store them anew."""
        with self._clock.during("transfer"):
            items = [
                msgspec.structs.replace(item, data=await self._read(as_media(item)), blob="") if item.blob else item
                for item in media_of(output)
            ]
        return GalleryOutput(items) if isinstance(output, GalleryOutput) else items[0] if items else output

    async def _stop(self, node: Node, ask: Ask) -> None:
        """Stop a step, and wait a moment for its end."""
        reason: Reason = next((known for known in REASONS if known == self._run.stopped), "cancelled_by_caller")
        await asyncio.wait(
            {self._means.stop(ask, reason, lambda end: self._account.note(node, ask, end))}, timeout=STOP_S
        )


_WORDS: dict[Reason, str] = {
    "engine_lost": "its engine was lost.",
    "worker_lost": "the workers that took it were lost.",
    "deadline": "its deadline has passed.",
}


def _failure(node: Node, end: Ended) -> EngineError | RefusedInput:
    """Make the error of a step that did not succeed."""
    words = end.detail or _WORDS.get(end.reason, "it gave nothing.")
    if end.reason == "refused_by_engine":
        return RefusedInput(f"Step {node.title}: {words}")
    return EngineError(f"Step {node.title} failed: {words}")


def _first(failures: ExceptionGroup[Exception]) -> Exception:
    """Give the failure that took the others down with it; what nobody expects goes before what a step says."""
    unexpected = (one for one in failures.exceptions if not isinstance(one, EngineError | RefusedInput))
    return next(unexpected, failures.exceptions[0])
