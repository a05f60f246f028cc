"""Which events of a request follow each other, and which do not."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.queues.order import Order


def test_deltas_and_the_end_follow_in_order() -> None:
    order = Order()
    assert [order.judge(1, seq, last=False) for seq in (0, 1, -1, 2)] == ["next"] * 4
    assert order.judge(1, 3, last=True) == "next"


def test_a_missing_delta_is_a_gap_also_when_the_end_comes_first() -> None:
    order = Order()
    order.judge(1, 0, last=False)
    assert order.judge(1, 2, last=False) == "gap"
    assert order.judge(1, 2, last=True) == "gap"


def test_an_end_that_counts_fewer_deltas_than_came_is_a_gap() -> None:
    order = Order()
    order.judge(1, 0, last=False)
    order.judge(1, 1, last=False)
    assert order.judge(1, 1, last=True) == "gap"


def test_a_repeated_delta_is_stale() -> None:
    order = Order()
    order.judge(1, 0, last=False)
    assert order.judge(1, 0, last=False) == "stale"
    assert order.judge(1, 1, last=False) == "next"


def test_a_later_attempt_is_told_only_when_deltas_of_an_earlier_one_were_heard() -> None:
    silent, heard = Order(), Order()
    silent.judge(1, -1, last=False)
    heard.judge(1, 0, last=False)
    assert silent.judge(2, 0, last=False) == "next"
    assert heard.judge(2, 0, last=False) == "restarted"
    assert heard.judge(2, 1, last=False) == "next"
    assert heard.judge(1, 1, last=False) == "stale"


def test_who_joins_in_the_middle_begins_with_what_comes() -> None:
    order = Order(1, None)
    assert order.judge(1, 7, last=False) == "next"
    assert order.judge(1, 9, last=False) == "gap"


@given(lost=st.sets(st.integers(0, 9)), total=st.integers(1, 10))
def test_an_answer_is_whole_if_and_only_if_all_is_next(lost: set[int], total: int) -> None:
    """Whatever is lost on the way, an answer with only `next` verdicts has every delta."""
    order = Order()
    arrived = [seq for seq in range(total) if seq not in lost]
    verdicts = [order.judge(1, seq, last=False) for seq in arrived]
    verdicts.append(order.judge(1, total, last=True))
    assert (set(verdicts) == {"next"}) == (arrived == list(range(total)))
