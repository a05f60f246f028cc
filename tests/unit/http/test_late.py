"""An application that is made at its first call: once, in a thread, and anew where that failed."""

import asyncio
import threading
from typing import Any

import pytest
from litestar.types import Receive, Scope, Send

from gateway.http.late import Late

SCOPE: Any = {"type": "http"}


class Works:
    """Makes an application that counts its calls, when it is let; `faults` makings fail first."""

    def __init__(self, faults: int = 0) -> None:
        self.may = threading.Event()
        self.faults = faults
        self.made = 0
        self.served = 0

    def make(self) -> Any:
        assert self.may.wait(60)
        if self.faults:
            self.faults -= 1
            raise OSError("no templates")
        self.made += 1
        return self.serve

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.served += 1


async def nothing(*_: Any) -> Any:
    raise AssertionError("nobody reads or writes here")


async def test_many_first_calls_make_it_once_and_hold_nobody_else_up() -> None:
    works = Works()
    late = Late(works.make)
    assert works.made == 0
    first = [asyncio.create_task(late.serve(SCOPE, nothing, nothing)) for _ in range(5)]
    await asyncio.sleep(0.01)  # the loop goes on while the thread waits
    assert works.served == 0
    works.may.set()
    await asyncio.gather(*first)
    assert (works.made, works.served) == (1, 5)


async def test_a_making_that_fails_is_told_and_tried_again_by_the_next_call() -> None:
    works = Works(faults=1)
    works.may.set()
    late = Late(works.make)
    with pytest.raises(OSError, match="no templates"):
        await late.serve(SCOPE, nothing, nothing)
    await late.serve(SCOPE, nothing, nothing)
    assert (works.made, works.served) == (1, 1)
