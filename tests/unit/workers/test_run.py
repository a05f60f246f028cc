"""What a worker does with a request, from its taking to its end."""

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from gateway.contract.events import Ended, Started, TextDelta, TextOutput, encode_ended
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.queues.keys import reply_channel
from gateway.queues.port import Waiting
from tests.unit.workers.conftest import CHAT, LEASE_MS, LONG, SLOW, STREAM, WITHIN_S

if TYPE_CHECKING:
    from tests.unit.workers.conftest import Pool


async def test_a_request_is_run_and_ends_with_what_it_measured(pool: "Pool") -> None:
    await pool.serve(CHAT)
    pool.start()
    request_id = await pool.submit("chat", "one two three")
    (end,) = await pool.ended()
    assert (end.id, end.attempt, end.outcome, end.reason) == (request_id, 1, "succeeded", "done")
    assert (end.price, end.worker, end.reply, end.forward_began) == (7, "w1", "gw", True)
    assert (end.units.input_tokens, end.units.output_tokens) == (3, 20)
    assert end.phases.queue_us > 0
    (heard,) = pool.frames_of(request_id)
    assert isinstance(heard.event, Ended)
    assert isinstance(heard.event.output, TextOutput)
    assert heard.event.output.choices[0].text.startswith("the gate opens")
    assert (await pool.queue.depth()).leased == 0


async def test_a_stream_is_told_piece_by_piece_and_its_end_counts_the_pieces(pool: "Pool") -> None:
    await pool.serve(STREAM)
    pool.start()
    request_id = await pool.submit("stream", stream=True)
    await pool.ended()
    await pool.until_heard(request_id, 21)
    *pieces, last = pool.frames_of(request_id)
    assert [frame.seq for frame in pieces] == list(range(20))
    assert all(isinstance(frame.event, TextDelta) for frame in pieces)
    assert isinstance(last.event, Ended)
    assert (last.seq, last.event.output) == (20, None)


async def test_what_one_tick_produces_leaves_in_one_command(pool: "Pool") -> None:
    messages: list[bytes] = []
    await pool.queues.channels.subscribe(reply_channel("gw"), messages.append, lambda: None)
    await pool.serve(CHAT, STREAM)
    pool.start()
    await pool.submit_all([("chat", "hello")] * 50)
    entries = await pool.settler.settlements(["p"], 100, wait_s=WITHIN_S)
    assert [len(entry.ended) for _, entry in entries] == [50]
    assert len(messages) == 1
    await pool.submit_all([("stream", "hello")] * 50, stream=True)
    await pool.ended(50)
    await pool.until(lambda: len(pool.frames) == 50 + 50 * 21)
    assert len(messages) < 50


async def test_a_kept_request_leaves_its_events_for_a_later_reader(pool: "Pool") -> None:
    await pool.serve(STREAM)
    pool.start()
    request_id = await pool.submit("stream", keep=True, reply="")
    (end,) = await pool.ended()
    assert isinstance(end.output, TextOutput)
    events = [event async for _, event in pool.queue.events(request_id)]
    assert isinstance(events[0], Started)
    assert events[0].worker == "w1"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == end.output.choices[0].text
    assert isinstance(events[-1], Ended)


async def test_cancelling_stops_within_a_step_and_charges_the_tokens_produced(pool: "Pool") -> None:
    await pool.serve(LONG)
    pool.start(heartbeat_s=60.0)
    took_s = []
    for _ in range(3):  # the quickest counts: a machine may pause
        request_id = await pool.submit("long", stream=True)
        await pool.until_heard(request_id, 10)
        began = time.perf_counter()
        assert await pool.cancel(request_id) == "told"
        (end,) = await pool.ended()
        took_s.append(time.perf_counter() - began)
        assert (end.outcome, end.reason, end.output) == ("cancelled", "cancelled_by_caller", None)
        deltas = [frame for frame in pool.frames_of(request_id) if isinstance(frame.event, TextDelta)]
        assert end.units.output_tokens == len(deltas) >= 10
        assert end.forward_began
    assert min(took_s) < 0.1


async def test_a_cancellation_that_was_not_heard_comes_with_the_heartbeat(pool: "Pool") -> None:
    await pool.serve(LONG)
    pool.start()
    request_id = await pool.submit("long", stream=True)
    await pool.until_heard(request_id, 1)
    unheard = Ended(request_id, 0, "cancelled", "client_gone", Units(), Phases(), 7)
    pool.state.cancels[request_id] = encode_ended([unheard])
    (end,) = await pool.ended()
    assert (end.outcome, end.reason) == ("cancelled", "client_gone")


async def test_a_request_past_its_deadline_is_not_run(pool: "Pool") -> None:
    await pool.serve(CHAT)
    await pool.submit("chat", deadline_ms=pool.queues.now_us() // 1000 - 1)
    pool.start()
    (end,) = await pool.ended()
    assert (end.outcome, end.reason, end.forward_began) == ("expired", "deadline", False)
    assert end.units.output_tokens == end.units.input_tokens == 0


async def test_a_deadline_that_passes_meanwhile_ends_the_run_with_its_units(pool: "Pool") -> None:
    await pool.serve(LONG)
    pool.start()
    await pool.until_ready()
    tokens = []
    for _ in range(3):  # one in time is enough: a machine may pause
        await pool.submit("long", deadline_ms=pool.queues.now_us() // 1000 + 150)
        (end,) = await pool.ended()
        assert (end.outcome, end.reason) == ("expired", "deadline")
        tokens.append(end.units.output_tokens)
    assert any(5 < count < 40 for count in tokens), tokens


async def test_deadlines_are_told_by_the_clock_of_the_queue(pool: "Pool") -> None:
    """A worker whose own clock is an hour behind runs nothing that is too late."""
    await pool.serve(CHAT)
    pool.ahead_us = 3_600_000_000
    await pool.submit("chat", deadline_ms=time.time_ns() // 1_000_000 + 60_000)
    pool.start()
    (end,) = await pool.ended()
    assert end.outcome == "expired"


async def test_an_attempt_that_lost_its_lease_leaves_nothing(pool: "Pool") -> None:
    await pool.serve(STREAM)
    pool.start(heartbeat_s=60.0)
    request_id = await pool.submit("stream", "fake:hang=1", stream=True)
    await pool.until(lambda: request_id in pool.state.leases)
    assert (await pool.expire_leases()).returned == 1
    (end,) = await pool.ended()
    assert (end.attempt, end.outcome) == (2, "succeeded")
    await asyncio.sleep(0.3)
    assert pool.state.stream == {}
    told = [frame.attempt for frame in pool.frames_of(request_id) if isinstance(frame.event, Ended)]
    assert told == [2]


async def test_a_lost_lease_stops_the_run_at_the_next_heartbeat(pool: "Pool") -> None:
    await pool.serve(LONG)
    pool.start()
    request_id = await pool.submit("long", stream=True)
    await pool.until_heard(request_id, 5)
    del pool.state.leases[request_id]
    await pool.until(lambda: not any(status.running for _, status in pool.state.workers.values()))
    told = len(pool.frames_of(request_id))
    await asyncio.sleep(0.1)
    assert len(pool.frames_of(request_id)) == told
    assert pool.state.stream == {}


async def test_a_heartbeat_keeps_the_lease_of_a_long_run(pool: "Pool") -> None:
    """Over eight thirds of a lease, with a heartbeat after each."""
    await pool.serve(LONG)
    pool.start()
    request_id = await pool.submit("long")
    await pool.until(lambda: request_id in pool.state.leases)
    for _ in range(8):
        pool.ahead_us += LEASE_MS * 1000 // 3
        before = pool.state.leases[request_id]
        await pool.until(lambda before=before: pool.state.leases[request_id] > before)
        assert (await pool.settler.sweep("p", 3)).returned == 0
    assert await pool.cancel(request_id) == "told"
    (end,) = await pool.ended()
    assert (end.id, end.attempt) == (request_id, 1)


@pytest.mark.parametrize(
    ("prompt", "reason", "detail"),
    [
        ("fake:fail", "engine_error", "The fake engine was told to fail."),
        ("fake:refuse", "refused_by_engine", "The fake engine was told to refuse this."),
    ],
)
async def test_a_failure_is_told_to_the_caller_and_the_worker_goes_on(
    pool: "Pool", prompt: str, reason: str, detail: str
) -> None:
    await pool.serve(CHAT)
    pool.start()
    failing = await pool.submit("chat", prompt)
    (end,) = await pool.ended()
    assert (end.id, end.outcome, end.reason, end.detail) == (failing, "failed", reason, detail)
    await pool.submit("chat")
    (end,) = await pool.ended()
    assert end.outcome == "succeeded"


async def test_an_input_that_cannot_be_read_is_refused_and_the_worker_goes_on(pool: "Pool") -> None:
    await pool.serve(CHAT)
    pool.start()
    await pool.queue.enqueue([Waiting(pool.request("chat", "hello", input=b"\xc1"))])
    (end,) = await pool.ended()
    assert (end.outcome, end.reason) == ("failed", "refused_by_engine")
    await pool.submit("chat")
    assert (await pool.ended())[0].outcome == "succeeded"


async def test_a_worker_takes_no_more_than_its_engine_has_room_for(pool: "Pool") -> None:
    await pool.serve(SLOW)
    pool.start()
    await pool.submit_all([("slow", "hello")] * 5)
    ending, most = asyncio.create_task(pool.ended(5)), 0
    while not ending.done():
        most = max(most, len(pool.state.leases))
        await asyncio.sleep(0.002)
    assert (most, len(await ending)) == (2, 5)


async def test_a_worker_holds_no_more_than_its_setting_allows(pool: "Pool") -> None:
    await pool.serve(LONG)
    pool.start(max_concurrency=3, drain_s=0.1)
    await pool.submit_all([("long", "hello")] * 5)
    await pool.until(lambda: len(pool.state.leases) == 3)
    await asyncio.sleep(0.1)
    assert (await pool.queue.depth()).leased == 3
