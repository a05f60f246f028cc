"""Requests of many texts: each goes to the engine by itself, several at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from workers.engine import Run
from workers.engines.vllm.shapes import Origin, Pooled, Prompt

Pool = Callable[[str, Prompt], Awaitable[Pooled]]


def origin_of(run: Run) -> Origin:
    """Say whose request it is."""
    return Origin(account=run.request.account, model=run.request.model)


async def pool_each(run: Run, prompts: Sequence[Prompt], width: int, pool: Pool) -> list[bytes]:
    """Have each prompt pooled, `width` of them at a time. A text is counted when its numbers are there.

    Raises what `pool` raises. When the task is cancelled, the engine has let all of them go.
    """
    numbers = [b""] * len(prompts)
    waiting = iter(enumerate(prompts))

    async def work() -> None:
        for index, prompt in waiting:
            pooled = await pool(f"{run.request.id}-{run.attempt}-{index}", prompt)
            run.units.input_tokens += len(prompt.ids)
            run.units.cached_tokens += pooled.cached_tokens
            numbers[index] = pooled.numbers

    run.began()
    with run.phases.timed("forward"):
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(width, len(prompts))):
                    group.create_task(work())
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
    return numbers
