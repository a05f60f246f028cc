"""One timer for all streams: what is due within the same 5 ms leaves in the same event-loop tick.

Each stream keeps the schedule `start + k * interval`, so a late tick makes up for what it missed and
nothing drifts; a token is up to 5 ms late, as in any engine that decodes all its sequences in steps. 200
streams with a token each 10 ms wake the loop 200 times a second, not 20,000 times.
"""

import asyncio
import math
from heapq import heappop, heappush

from gateway.contract.events import TextDelta
from workers.engine import Run

GRID_S = 0.005


class Stream:
    """One run on its way through its deltas; `ended` completes with the last one."""

    __slots__ = ("_at", "_deltas", "_interval_s", "_run", "_start_s", "_steps", "ended", "stopped")

    def __init__(self, run: Run, deltas: tuple[tuple[TextDelta, ...], ...], interval_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._run = run
        self._deltas = deltas
        self._interval_s = interval_s
        self._start_s = loop.time()
        self._at = 0
        self._steps = max(map(len, deltas))
        self.ended: asyncio.Future[None] = loop.create_future()
        self.stopped = False

    def advance(self, now_s: float) -> float | None:
        """Produce the tokens that are due; answers when the next one is, None after the last."""
        steps = self._steps
        due = min(steps, int((now_s - self._start_s) / self._interval_s + 1e-6) + 1)
        run, units = self._run, self._run.units
        for at in range(self._at, due):
            for choice in self._deltas:
                if at < len(choice):
                    units.output_tokens += 1
                    run.emit(choice[at])
        self._at = due
        if due < steps:
            return self._start_s + due * self._interval_s
        if not self.ended.done():
            self.ended.set_result(None)
        return None


class Pacer:
    """Advances many streams, each when it is due."""

    def __init__(self) -> None:
        self._due: dict[int, list[Stream]] = {}
        self._ticks: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_tick = 0

    async def play(self, stream: Stream) -> None:
        """Play a stream to its end; its first token comes at once. When this is cancelled, no token follows."""
        self._put(stream, stream.advance(asyncio.get_running_loop().time()))
        self._arm()
        try:
            await stream.ended
        finally:
            stream.stopped = True

    def _put(self, stream: Stream, due_s: float | None) -> None:
        if due_s is None:
            return
        tick = math.ceil(due_s / GRID_S)
        streams = self._due.get(tick)
        if streams is None:
            self._due[tick] = [stream]
            heappush(self._ticks, tick)
        else:
            streams.append(stream)

    def _arm(self) -> None:
        if not self._ticks or (self._timer is not None and self._timer_tick <= self._ticks[0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_tick = self._ticks[0]
        self._timer = asyncio.get_running_loop().call_at(self._timer_tick * GRID_S, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now_s = max(asyncio.get_running_loop().time(), self._timer_tick * GRID_S)
        while self._ticks and self._ticks[0] * GRID_S <= now_s:
            for stream in self._due.pop(heappop(self._ticks)):
                if not stream.stopped:
                    self._put(stream, stream.advance(now_s))
        self._arm()
