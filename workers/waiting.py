"""How a worker waits: for a Redis that is away, and for an event that may not come."""

import asyncio

import structlog

log = structlog.get_logger()

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


class Backoff:
    """Pauses that double from 50 ms to a second, and one log line for each time that Redis goes away."""

    def __init__(self, action: str) -> None:
        self._action = action
        self._pause_s = FIRST_PAUSE_S
        self.failures = 0
        """Tries in a row that failed."""

    async def pause(self, error: Exception) -> None:
        """Wait after a try that failed."""
        if not self.failures:
            log.warning(self._action, error=type(error).__name__, detail=str(error))
        self.failures += 1
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def reset(self) -> None:
        """Note that a try has succeeded."""
        self.failures = 0
        self._pause_s = FIRST_PAUSE_S


async def happens_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most so long, and say whether it happened."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
