"""What a worker remembers of its leases."""

from gateway.contract.events import AudioDelta, Ended, Frame, MediaOutput, TextDelta
from gateway.contract.phases import Phases
from gateway.contract.request import Request
from gateway.contract.units import Units
from gateway.queues.held import Held
from gateway.queues.port import Taken

OUTPUT = MediaOutput("audio/wav", 4, b"RIFF")


def request(name: str, *, keep: bool = False) -> Request:
    return Request(name, 1, "m", "chat", b"", 9, reply="gw", stream=True, keep=keep)


def holding(*requests: Request, attempt: int = 1) -> Held:
    held = Held()
    held.add(Taken(one, attempt, 0) for one in requests)
    return held


def end(one: Request, attempt: int = 1) -> Ended:
    return Ended(one.id, attempt, "succeeded", "done", Units(), Phases(), 9, reply=one.reply, output=OUTPUT)


def test_frames_of_an_attempt_that_is_not_held_are_dropped() -> None:
    one = request("req_a")
    held = holding(one, attempt=2)
    frames = [(one, Frame("req_a", attempt, 0, TextDelta("x"))) for attempt in (1, 2, 3)]
    assert [frame.attempt for _, frame in held.current(frames)] == [2]
    held.drop([("req_a", 2)])
    assert held.current(frames) == []


def test_the_end_counts_the_deltas_of_each_place_it_goes_to() -> None:
    """Sound goes to a caller who streams and not into the log, so the log's end counts none of it."""
    kept = request("req_a", keep=True)
    unlogged = Request("req_a", 1, "m", "chat", b"", 9, reply="gw", stream=True, keep=False)
    held = holding(kept)
    held.current([(unlogged, Frame("req_a", 1, seq, AudioDelta(b"x"))) for seq in range(3)])
    closing = held.closing([end(kept)])
    assert closing.frames["gw"][0].seq == 3
    assert [deltas for deltas, _ in closing.logs] == [0]


def test_outputs_go_where_they_are_wanted() -> None:
    kept, sync = request("req_a", keep=True), request("req_b")
    closing = holding(kept, sync).closing([end(kept), end(sync)])
    assert [one.output for one in closing.stream] == [OUTPUT, None]
    assert [frame.event.output for frame in closing.frames["gw"] if isinstance(frame.event, Ended)] == [OUTPUT, OUTPUT]
    assert [(one.id, one.output) for _, one in closing.logs] == [("req_a", None)]


def test_attempts_are_known_of_what_is_held() -> None:
    held = holding(request("req_a"), request("req_b"), attempt=4)
    held.drop([("req_a", 3), ("req_b", 4)])
    assert held.attempts(["req_b", "req_a", "req_c"]) == [("req_a", 4)]


def test_the_end_of_a_step_stands_whole_in_its_log_and_brief_in_the_stream() -> None:
    """Nobody settles it, and its workflow reads what it made from nowhere else."""
    step = Request("req_a", 1, "m", "chat", b"", 0, keep=True, parent="req_p")
    ended = Ended("req_a", 1, "succeeded", "done", Units(), Phases(), 0, output=OUTPUT, parent="req_p")
    closing = holding(step).closing([ended])
    assert [one.output for one in closing.stream] == [None]
    assert [one.output for _, one in closing.logs] == [OUTPUT]
    assert closing.frames == {}
