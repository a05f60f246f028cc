"""What stands in the settlements stream."""

import pytest

from gateway.contract.events import Ended, encode_ended
from gateway.contract.phases import Phases
from gateway.contract.request import Request, encode_request
from gateway.contract.units import Units
from gateway.queues.settlements import attempts_in, read_entry

REQUEST = Request("req_lost", 1, "m", "chat", b"", 9, reply="gw")
ENDED = [Ended(one, 1, "succeeded", "done", Units(1), Phases(), 9) for one in ("req_a", "req_b")]
CANCEL = Ended("req_lost", 0, "cancelled", "client_gone", Units(), Phases(), 9)


def lost(cancel: bytes) -> list[bytes]:
    return [b"lost", encode_request(REQUEST), b"attempt", b"3", b"cancel", cancel]


def test_the_ends_of_a_batch_are_read() -> None:
    fields = [b"ended", encode_ended(ENDED)]
    assert read_entry(fields, "pool").ended == ENDED
    assert attempts_in(fields) == [("req_a", 1), ("req_b", 1)]


def test_a_request_that_was_given_up_ends_as_failed_and_free() -> None:
    entry = read_entry(lost(b""), "pool")
    [end] = entry.ended
    assert (end.id, end.attempt, end.outcome, end.reason) == ("req_lost", 3, "failed", "worker_lost")
    assert (end.price, end.reply, end.units) == (9, "gw", Units())
    assert entry.lost == REQUEST
    assert attempts_in(lost(b"")) == [("req_lost", 3)]


def test_a_request_that_was_to_stop_ends_as_whoever_stopped_it_said() -> None:
    assert read_entry(lost(encode_ended([CANCEL])), "pool").ended == [CANCEL]


@pytest.mark.parametrize("fields", [[b"ended", b"\xc1"], [b"lost", b"\xc1", b"attempt", b"1", b"cancel", b""]])
def test_an_entry_that_cannot_be_read_is_an_error(fields: list[bytes]) -> None:
    with pytest.raises(Exception, match=r"."):
        read_entry(fields, "pool")
