"""A submit whose answer nobody read is told again to whoever sends it once more; two who listen get one each."""

import asyncio
from typing import Any

import pytest

from gateway.http.fal.repeats import Repeats

DIGEST = b"the same"


class Caller:
    """A caller whose body has been read: it says nothing until it leaves."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def test_an_answer_that_was_read_is_not_told_again() -> None:
    repeats, caller = Repeats(), Caller()
    first = repeats.begin(DIGEST, caller.receive)
    await repeats.accepted(DIGEST, first, "req_1")
    caller.gone.set()
    assert await repeats.earlier(DIGEST) is None


async def test_an_answer_that_nobody_read_is_told_again_once() -> None:
    repeats, caller = Repeats(), Caller()
    first = repeats.begin(DIGEST, caller.receive)
    caller.gone.set()
    await repeats.accepted(DIGEST, first, "req_1")
    assert await repeats.earlier(b"another") is None
    assert await repeats.earlier(DIGEST) == "req_1"
    assert await repeats.earlier(DIGEST) is None


async def test_whoever_comes_again_while_the_first_is_under_way_waits_for_it() -> None:
    repeats, caller = Repeats(), Caller()
    first = repeats.begin(DIGEST, caller.receive)
    caller.gone.set()
    again, third = asyncio.create_task(repeats.earlier(DIGEST)), asyncio.create_task(repeats.earlier(DIGEST))
    await asyncio.sleep(0.01)
    assert not again.done()
    assert await third is None  # one answer, one reader
    await repeats.accepted(DIGEST, first, "req_1")
    assert await again == "req_1"
    assert await repeats.earlier(DIGEST) is None


async def test_two_who_both_listen_get_one_request_each() -> None:
    repeats, caller = Repeats(), Caller()
    repeats.begin(DIGEST, caller.receive)
    assert await repeats.earlier(DIGEST) is None


async def test_what_was_refused_is_not_told_again() -> None:
    repeats, caller = Repeats(), Caller()
    first = repeats.begin(DIGEST, caller.receive)
    caller.gone.set()
    again = asyncio.create_task(repeats.earlier(DIGEST))
    await asyncio.sleep(0.01)
    repeats.refused(DIGEST, first)
    assert await again is None


async def test_an_answer_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    repeats, caller = Repeats(), Caller()
    first = repeats.begin(DIGEST, caller.receive)
    caller.gone.set()
    await repeats.accepted(DIGEST, first, "req_1")
    monkeypatch.setattr("gateway.http.fal.repeats.KEEP_S", 0.0)
    assert await repeats.earlier(DIGEST) is None
