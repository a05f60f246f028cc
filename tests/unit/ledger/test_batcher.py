"""The batcher: no added wait, bounded, and every caller gets his own answer or knows that he left."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.errors import Unavailable
from gateway.ledger.batcher import AGAIN, Again, Batcher


class Line:
    """A batcher of numbers whose answers are the numbers times ten, with a gate that holds batches back."""

    def __init__(self, *, most: int = 4, limit: int = 100) -> None:
        self.batches: list[list[int]] = []
        self.abandoned: list[tuple[int, int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuse_once: set[int] = set()
        self.batcher: Batcher[int, int] = Batcher(
            self.send, most=most, limit=limit, abandoned=lambda item, answer: self.abandoned.append((item, answer))
        )

    async def send(self, items: list[int]) -> Sequence[int | BaseException | Again]:
        self.batches.append(items)
        await self.gate.wait()
        answers: list[int | BaseException | Again] = []
        for item in items:
            if item < 0:
                answers.append(ValueError(item))
            elif item in self.refuse_once:
                self.refuse_once.discard(item)
                answers.append(AGAIN)
            else:
                answers.append(item * 10)
        return answers

    async def ask(self, *items: int) -> list[int | BaseException]:
        async def one(item: int) -> int:
            return await self.batcher.submit(item)

        return await asyncio.gather(*(one(item) for item in items), return_exceptions=True)


async def test_what_comes_in_one_tick_goes_in_one_batch_without_waiting() -> None:
    line = Line()
    assert await line.ask(1, 2, 3) == [10, 20, 30]
    assert line.batches == [[1, 2, 3]]


async def test_a_batch_is_never_larger_than_the_most_and_the_order_stays() -> None:
    line = Line(most=4)
    assert await line.ask(*range(10)) == [10 * n for n in range(10)]
    assert line.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


async def test_what_comes_while_a_batch_is_out_goes_in_the_next() -> None:
    line = Line()
    line.gate.clear()
    first = asyncio.create_task(line.ask(1))
    await asyncio.sleep(0.01)
    rest = asyncio.create_task(line.ask(2, 3))
    await asyncio.sleep(0.01)
    line.gate.set()
    assert [await first, await rest] == [[10], [20, 30]]
    assert line.batches == [[1], [2, 3]]


async def test_an_item_that_must_come_again_goes_in_front_of_the_next_batch() -> None:
    line = Line(most=3)
    line.refuse_once = {2, 3}
    assert await line.ask(1, 2, 3, 4, 5) == [10, 20, 30, 40, 50]
    assert line.batches == [[1, 2, 3], [2, 3, 4], [5]]


async def test_an_exception_is_for_its_own_caller() -> None:
    one, bad, two = await Line().ask(1, -1, 2)
    assert (one, two) == (10, 20)
    assert isinstance(bad, ValueError)


async def test_a_caller_who_leaves_before_his_batch_takes_his_item_with_him() -> None:
    line = Line()
    line.gate.clear()
    first = asyncio.create_task(line.ask(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.create_task(line.ask(2))
    await asyncio.sleep(0.01)
    second.cancel()
    await asyncio.sleep(0)
    line.gate.set()
    await first
    await line.ask(3)
    assert line.batches == [[1], [3]]
    assert line.abandoned == []


async def test_a_caller_who_leaves_while_his_batch_is_out_is_told_of() -> None:
    line = Line()
    line.gate.clear()
    tasks = [asyncio.create_task(line.ask(n)) for n in (1, -2, 3)]
    await asyncio.sleep(0.01)
    for task in tasks[:2]:
        task.cancel()
    await asyncio.sleep(0)
    line.gate.set()
    assert await tasks[2] == [30]
    assert line.abandoned == [(1, 10)]


async def test_more_than_the_limit_is_refused_at_once() -> None:
    line = Line(most=1, limit=3)
    line.gate.clear()
    waiting = asyncio.create_task(line.ask(*range(3)))
    await asyncio.sleep(0.01)  # one is out, two wait
    more = asyncio.create_task(line.ask(3, 4))
    await asyncio.sleep(0.01)
    line.gate.set()
    assert await waiting == [0, 10, 20]
    accepted, refused = await more
    assert accepted == 30
    assert isinstance(refused, Unavailable)


async def test_a_sender_that_breaks_fails_all_who_wait_and_the_next_call_goes_through() -> None:
    line = Line(most=2)
    broken = True

    async def send(items: list[int]) -> Sequence[int | BaseException | Again]:
        if broken:
            raise ZeroDivisionError
        return await line.send(items)

    line.batcher = Batcher(send, most=2, limit=10, abandoned=lambda item, answer: None)
    assert [type(end) for end in await line.ask(1, 2, 3)] == [ZeroDivisionError] * 3
    broken = False
    assert await line.ask(4) == [40]


async def test_closing_answers_who_waits_and_refuses_who_comes() -> None:
    line = Line()
    line.gate.clear()
    waiting = asyncio.create_task(line.ask(1, 2, 3, 4, 5))
    await asyncio.sleep(0.01)
    closing = asyncio.create_task(line.batcher.close())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        line.batcher.submit(6)
    line.gate.set()
    await closing
    assert await waiting == [10, 20, 30, 40, 50]
