"""Reading a log from any place in it."""

import pytest

from gateway.contract.events import Ended, Event, Progress, TextDelta, encode_event
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.queues.event_log import Entry, LogReader
from gateway.queues.port import EventsLost


def entry(at: str, seq: int, event: Event | None = None) -> Entry:
    return at, seq, encode_event(event or TextDelta(str(seq)))


def end(at: str, seq: int) -> Entry:
    return entry(at, seq, Ended("req_x", 1, "succeeded", "done", Units(), Phases(), 1))


LOG = [entry("1-0", 0), entry("1-1", -1, Progress(0.5)), entry("1-2", 1), end("1-3", 2)]


@pytest.mark.parametrize("place", range(1, 5))
def test_reading_goes_on_after_any_entry(place: int) -> None:
    """Also after an entry without a number of its own, and after the last one."""
    reader = LogReader(LOG[place - 1][0])
    assert [at for at, _ in reader.read(LOG[place - 1 :])] == [at for at, _, _ in LOG[place:]]
    assert reader.ended


def test_pages_may_overlap_by_the_last_entry_read() -> None:
    reader = LogReader("")
    assert [at for at, _ in reader.read(LOG[:2])] == ["1-0", "1-1"]
    assert [at for at, _ in reader.read(LOG[1:])] == ["1-2", "1-3"]


def test_a_log_that_lost_its_beginning_cannot_be_read_from_the_start() -> None:
    with pytest.raises(EventsLost):
        LogReader("").read(LOG[2:])


def test_a_log_that_moved_beyond_the_reader_cannot_be_continued() -> None:
    with pytest.raises(EventsLost):
        LogReader("1-0").read(LOG[2:])


def test_a_log_that_is_gone_cannot_be_continued() -> None:
    with pytest.raises(EventsLost):
        LogReader("1-0").read([])


def test_a_later_attempt_may_replace_the_one_that_was_read() -> None:
    reader = LogReader("1-7")
    assert [at for at, _ in reader.read([entry("2-0", 0), entry("2-1", 1)])] == ["2-0", "2-1"]


def test_a_delta_lost_before_it_was_logged_is_an_error() -> None:
    with pytest.raises(EventsLost):
        LogReader("").read([entry("1-0", 0), end("1-1", 2)])


@pytest.mark.parametrize("after", ["x", "1", "-1", "1-", "1-2-3", "1-0\n", "9" * 30 + "-0"])
def test_what_is_no_place_in_a_log_is_refused(after: str) -> None:
    with pytest.raises(EventsLost):
        LogReader(after)
