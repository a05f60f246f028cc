"""Runs of the playground: real, charged requests, followed here so that whoever looks sees them as they come."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from gateway.admin.playground.elsewhere import Elsewhere, noted
from gateway.contract.events import Delta, Output, TextDelta, TextOutput
from gateway.contract.tasks import Task
from gateway.errors import FaregateError, TooManyRequests
from gateway.flow.call import Call
from gateway.flow.respond import failure, respond
from gateway.flow.way import Placed, Way
from gateway.ledger.admission import Replay
from gateway.ledger.open_requests import Record

MOST_RUNS = 200
"""Runs that are remembered by a gateway; the oldest that has ended goes first."""
MOST_OPEN = 50
MOST_TEXT = 400_000
TELL_S = 0.1
"""Text that streams is shown at most ten times a second."""


class Run:
    """One run. `number` rises with each thing that is new."""

    def __init__(self, run_id: str, model: str, quote_nanos: int, snippets: Mapping[str, str]) -> None:
        self.id = run_id
        self.model = model
        self.quote_nanos = quote_nanos
        self.snippets = snippets
        self.began_s = time.monotonic()
        self.first_s: float | None = None
        """Seconds to the first piece of text; None where another gateway began it."""
        self.text = ""
        self.attempt = 0
        self.succeeded = False
        self.output: Output | None = None
        self.failure: FaregateError | None = None
        self.number = 0
        self._news = asyncio.Event()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.succeeded or self.failure is not None

    def heard(self, deltas: Sequence[Delta]) -> None:
        """Take what streams; of several answers the first."""
        said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta) and delta.choice == 0)
        self.text = (self.text + said)[:MOST_TEXT]
        self.tell()

    def overheard(self, delta: TextDelta, attempt: int) -> None:
        """Take what streams through another gateway; a later attempt begins anew."""
        if attempt != self.attempt:
            self.attempt, self.text = attempt, ""
        self.heard([delta])

    def end(self, output: Output | None) -> None:
        """Take the output of a run that succeeded; what streamed is its text, as far as nothing of it was lost."""
        self.succeeded, self.output = True, output
        if isinstance(output, TextOutput) and output.choices and self.text:
            self.text = output.choices[0].text[:MOST_TEXT]

    def tell(self) -> None:
        """Wake whoever watches."""
        self.number += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def follow(self) -> AsyncGenerator[bool, None]:
        """Yield whenever there is something new, whether it is over; not more often than TELL_S."""
        seen = -1
        while True:
            news = self._news
            if self.number != seen:
                seen = self.number
                yield self.done
                if self.done and self.number == seen:
                    return
                await asyncio.sleep(TELL_S)
            else:
                await news.wait()


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is started with."""

    call: Call
    quote_nanos: int
    shown: Mapping[str, Any]
    """Its input, as snippets write it out."""
    snippets: Mapping[str, str]


Write = Callable[[str, Task, Mapping[str, Any]], Mapping[str, str]]
"""Writes the snippets of a call: of which model, task and input."""


class Runs:
    """The runs that somebody looks at here. One goes on, and is charged, whether anybody watches or not."""

    def __init__(self, way: Way, elsewhere: Elsewhere, write: Write) -> None:
        self._way = way
        self._elsewhere = elsewhere
        self._write = write
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._trails: set[asyncio.Task[None]] = set()

    async def start(self, wanted: Started) -> Run:
        """Place a request. Raises what refuses it, as it would any caller's."""
        if len(self._tasks) >= MOST_OPEN:
            raise TooManyRequests("Too many runs are open here: wait until some have ended.", code="too_many_runs")
        placed = await self._way.submit(noted(wanted.call, wanted.quote_nanos, wanted.shown))
        assert not isinstance(placed, Replay)  # only calls with an idempotency key are
        run = Run(placed.id, wanted.call.model, wanted.quote_nanos, wanted.snippets)
        self._remember(run)
        self._go(self._tasks, self._collect(run, placed))
        return run

    async def find(self, run_id: str) -> Run:
        """Find a run, whichever gateway started it. Raises NotFound for one that is no longer kept."""
        if run_id in self._runs:
            return self._runs[run_id]
        found = await self._elsewhere.find(run_id)
        if run_id in self._runs:  # somebody else has asked meanwhile
            return self._runs[run_id]
        record, sketch = found.record, found.sketch
        shown = self._write(found.model, record.task, sketch.shown) if sketch.shown is not None else {}
        run = Run(run_id, found.model, sketch.most_nanos, shown)
        if record.finished_us is not None:
            _end(run, record)
        elif len(self._trails) >= MOST_OPEN:
            raise TooManyRequests("Too many runs are open here: wait until some have ended.", code="too_many_runs")
        else:
            self._go(self._trails, self._trail(run, record))
        self._remember(run)
        return run

    def _remember(self, run: Run) -> None:
        self._runs[run.id] = run
        while len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)

    @staticmethod
    def _go(tasks: "set[asyncio.Task[None]]", work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _collect(self, run: Run, placed: Placed) -> None:
        box = placed.box
        assert box is not None
        try:
            while deltas := await box.more():
                run.heard(deltas)
                if run.first_s is None and run.text:
                    run.first_s = time.monotonic() - run.began_s
            run.end(respond(await box.finished(), self._way.age_us(placed)).output)
        except FaregateError as error:
            run.failure = error
        finally:
            self._way.close(placed)
            run.tell()

    async def _trail(self, run: Run, record: Record) -> None:
        try:
            _end(run, await self._elsewhere.follow(record, run.overheard))
        except FaregateError as error:
            run.failure = error
        finally:
            run.tell()


def _end(run: Run, record: Record) -> None:
    """Let a run end as its settled request says."""
    if record.outcome == "succeeded" or record.reason is None:
        run.end(record.output)
    else:
        run.failure = failure(record.id, record.reason, record.detail)
