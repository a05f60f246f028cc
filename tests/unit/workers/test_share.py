"""A worker's time is shared among what it runs at once, and the shares add up to the time in which it was busy."""

from hypothesis import given
from hypothesis import strategies as st

from workers.share import Shares

MS = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.now_ns = 5 * MS

    def __call__(self) -> int:
        return self.now_ns


def test_one_alone_has_all_the_time() -> None:
    clock = Clock()
    shares = Shares(clock)
    began = shares.begin()
    clock.now_ns += 7 * MS
    assert shares.end(began) == 7_000


def test_those_at_once_share_it_and_idle_time_is_nobodys() -> None:
    clock = Clock()
    shares = Shares(clock)
    first = shares.begin()
    clock.now_ns += 10 * MS
    second = shares.begin()
    clock.now_ns += 10 * MS
    assert shares.end(first) == 15_000
    clock.now_ns += 4 * MS
    assert shares.end(second) == 9_000
    clock.now_ns += 100 * MS
    third = shares.begin()
    clock.now_ns += 1 * MS
    assert shares.end(third) == 1_000


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=60))
def test_the_shares_add_up_to_the_busy_time(moves: list[tuple[bool, int]]) -> None:
    clock = Clock()
    shares = Shares(clock)
    running: list[float] = []
    given_out_us = busy_us = ends = 0
    for begins, wait_ms in moves:
        if begins or not running:
            running.append(shares.begin())
        else:
            given_out_us += shares.end(running.pop(0))
            ends += 1
        clock.now_ns += wait_ms * MS
        busy_us += wait_ms * 1000 if running else 0
    for began in running:
        given_out_us += shares.end(began)
        ends += 1
    assert abs(given_out_us - busy_us) <= ends
