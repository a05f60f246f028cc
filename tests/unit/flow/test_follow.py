"""What a waiting caller hears, in whatever order the worker's and the settler's words come."""

import asyncio
from typing import cast

import pytest

from gateway.contract.events import Choice, Ended, Frame, Settled, TextDelta, TextOutput
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.errors import EngineFailed
from gateway.flow.enqueue import Enqueued
from gateway.flow.follow import MOST_UNREAD, Mailbox, Mailboxes

ID = "req_" + "0" * 31 + "1"


class _Request:
    def __init__(self, stream: bool) -> None:
        self.stream = stream
        self.id = ID


class _Enqueued:
    """The little of an enqueued call that a mailbox reads."""

    def __init__(self, stream: bool) -> None:
        self.admitted = self
        self.waiting = self
        self.request = _Request(stream)
        self.id = ID


def mailbox(*, stream: bool) -> Mailbox:
    return Mailbox(cast(Enqueued, _Enqueued(stream)))


def ended(attempt: int = 1, seq: int = -1) -> Frame:
    output = TextOutput([Choice("yes")])
    end = Ended(ID, attempt, "succeeded", "done", Units(1), Phases(), 7, output=output)
    return Frame(ID, attempt, seq, end)


def settled(outcome: str = "succeeded") -> Frame:
    news = Settled(ID, outcome, "done", 5, 9, Units(1), Phases(), 1)  # type: ignore[arg-type]
    return Frame(ID, 1, -1, news)


def delta(seq: int, attempt: int = 1) -> Frame:
    return Frame(ID, attempt, seq, TextDelta(f"<{seq}>"))


@pytest.mark.parametrize("order", [(ended(), settled()), (settled(), ended())])
async def test_the_answer_needs_both_words_in_any_order(order: tuple[Frame, Frame]) -> None:
    box = mailbox(stream=False)
    box.deliver(order[0])
    assert not box.done
    waiting = asyncio.create_task(box.finished())
    await asyncio.sleep(0)
    box.deliver(order[1])
    finished = await waiting
    assert finished.settled.charge_nanos == 5
    assert finished.ended is not None


async def test_a_request_that_was_swept_ends_by_the_settlers_word_alone() -> None:
    box = mailbox(stream=False)
    box.deliver(settled("failed"))
    finished = await box.finished()
    assert finished.ended is None


async def test_deltas_come_in_order_and_end_with_an_empty_list() -> None:
    box = mailbox(stream=True)
    for frame in (delta(0), delta(1), ended(seq=2), settled()):
        box.deliver(frame)
    assert [cast(TextDelta, one).text for one in await box.more()] == ["<0>", "<1>"]
    assert await box.more() == []
    assert (await box.finished()).settled.charge_nanos == 5


@pytest.mark.parametrize("frames", [[delta(0), delta(2)], [delta(0), ended(seq=2)]])
async def test_a_gap_is_an_error_and_never_a_shorter_answer(frames: list[Frame]) -> None:
    box = mailbox(stream=True)
    for frame in [*frames, settled()]:
        box.deliver(frame)
    with pytest.raises(EngineFailed, match="lost on the way"):
        await box.finished()


async def test_a_second_attempt_after_the_first_was_heard_breaks_the_stream_off() -> None:
    box = mailbox(stream=True)
    box.deliver(delta(0))
    box.deliver(delta(0, attempt=2))
    with pytest.raises(EngineFailed, match="lost in the middle"):
        await box.finished()


async def test_a_second_attempt_before_anything_was_heard_is_the_answer() -> None:
    box = mailbox(stream=True)
    for frame in (delta(0, attempt=2), ended(attempt=2, seq=1), settled()):
        box.deliver(frame)
    assert len(await box.more()) == 1
    assert (await box.finished()).ended is not None


async def test_what_an_attempt_that_lost_says_is_not_heard() -> None:
    box = mailbox(stream=False)
    box.deliver(ended(attempt=2))
    box.deliver(ended(attempt=1))
    box.deliver(settled())
    end = (await box.finished()).ended
    assert end is not None
    assert end.attempt == 2


async def test_a_reader_that_does_not_read_is_cut_off_before_memory_is() -> None:
    box = mailbox(stream=True)
    for seq in range(MOST_UNREAD + 1):
        box.deliver(delta(seq))
    with pytest.raises(EngineFailed, match="not read fast enough"):
        await box.finished()


async def test_a_lost_reply_channel_breaks_streams_and_not_whole_answers() -> None:
    boxes = Mailboxes()
    stream, whole = _Enqueued(True), _Enqueued(False)
    stream.id, whole.id = "req_a", "req_b"
    streaming, waiting = boxes.open(cast(Enqueued, stream)), boxes.open(cast(Enqueued, whole))
    boxes.gap()
    assert streaming.done
    assert not waiting.done
