"""The steps of media work: each takes the model's interval, counts, and says how far the whole is."""

import asyncio
from collections.abc import AsyncIterator

from workers.engine import Run


async def stepped(run: Run, count: int, interval_s: float) -> AsyncIterator[int]:
    """Give the numbers from 1 to `count`, one an interval; a cancelled run stops between two of them.

    What the caller counts for a step has been counted before its progress is told.
    """
    for number in range(1, count + 1):
        await asyncio.sleep(interval_s)
        yield number
        run.progress(number / count)


def preview_steps(count: int, previews: int) -> dict[int, int]:
    """Say after which of `count` steps which preview is due: evenly, and never after the last step."""
    due = {number * count // (previews + 1): number - 1 for number in range(1, previews + 1)}
    return {step: at for at, step in enumerate(sorted(step for step in due if 0 < step < count))}
