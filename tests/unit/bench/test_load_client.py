"""The load client counts what a server really answered, and takes nothing broken for an answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from bench.client import Load, LoadError, LoadResult, run_load

Respond = Callable[[asyncio.StreamWriter], Awaitable[None]]

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"content": "a"}\n\n'
DONE = b"data: [DONE]\n\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def always(answer: bytes, *, close: bool = False) -> Respond:
    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        if close:
            writer.close()

    return respond


@asynccontextmanager
async def server(respond: Respond) -> AsyncIterator[int]:
    """A server that reads requests of known length and lets `respond` write the answers."""

    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                await respond(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def load(respond: Respond, **options: object) -> LoadResult:
    async with server(respond) as port:
        wanted = {"connections": 2, "seconds": 60.0, "most": 6, "grace_s": 60.0, **options}
        return await asyncio.to_thread(run_load, Load(port=port, body=b'{"model":"m"}', **wanted))


async def test_whole_answers_are_counted() -> None:
    """Six requests over two connections are six answers, none failed, on connections that stay open."""
    result = await load(always(WHOLE))
    assert (result.sent, result.answered, result.failures, result.reconnects) == (6, 6, 0, 0)
    assert 0 < result.latency_ms.p50 <= result.latency_ms.p99 <= result.latency_ms.max


async def test_another_status_than_200_is_a_failure_and_its_words_are_kept() -> None:
    """A refusal counts as bad, not as an answer of this speed, and what it said can be read."""
    result = await load(always(b'HTTP/1.1 402 No\r\nContent-Length: 15\r\n\r\n{"error": "no"}'))
    assert (result.bad_status, result.failures) == (6, 6)
    assert result.per_second == 0
    assert result.latency_ms.max == 0
    assert result.first_error == "402: {'error': 'no'}"


async def test_whole_streams_are_counted_by_event() -> None:
    """Only events that hold the marker count, not the one that says the stream is done."""
    head = chunk(b'data: {"role": "assistant"}\n\n')
    result = await load(always(STREAM + head + chunk(EVENT) * 3 + chunk(DONE) + END), stream=True)
    assert (result.streams, result.events, result.failures) == (6, 18, 0)
    assert (result.fewest_events, result.most_events) == (3, 3)


async def test_events_are_found_wherever_the_bytes_are_cut() -> None:
    """A stream that comes one byte at a time, two events in a chunk, reads the same."""
    answer = STREAM + chunk(EVENT + EVENT) + chunk(EVENT[:7]) + chunk(EVENT[7:]) + chunk(DONE) + END

    async def respond(writer: asyncio.StreamWriter) -> None:
        for at in range(len(answer)):
            writer.write(answer[at : at + 1])
            await writer.drain()
            await asyncio.sleep(0)

    result = await load(respond, stream=True, most=2)
    assert (result.streams, result.events, result.failures) == (2, 6, 0)


async def test_a_stream_that_does_not_say_done_is_incomplete() -> None:
    """A body that ends as HTTP says, without [DONE], is no whole stream."""
    result = await load(always(STREAM + chunk(EVENT) + END), stream=True)
    assert (result.streams, result.incomplete_streams, result.failures) == (6, 6, 6)


async def test_a_stream_whose_connection_closes_is_cut() -> None:
    """A connection that closes in the midst of a body is counted, even after [DONE]."""
    result = await load(always(STREAM + chunk(EVENT) + chunk(DONE), close=True), stream=True)
    assert (result.cut, result.streams, result.failures) == (6, 0, 6)


async def test_an_answer_that_is_cut_before_its_length_is_no_answer() -> None:
    """A body shorter than its Content-Length counts as cut."""
    result = await load(always(WHOLE[:-1], close=True))
    assert (result.cut, result.answered) == (6, 0)


async def test_a_silent_server_leaves_requests_unfinished() -> None:
    """What is not answered within the grace is counted, and the client ends."""

    async def silent(writer: asyncio.StreamWriter) -> None:
        pass

    result = await load(silent, seconds=0.1, grace_s=0.2)
    assert (result.unfinished, result.answered, result.failures) == (2, 0, 2)


async def test_the_first_event_is_timed() -> None:
    """The time to the first event is the server's delay before it, not that of the whole stream."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(STREAM + chunk(EVENT))
        await asyncio.sleep(0.2)
        writer.write(chunk(DONE) + END)

    firsts_ms = []
    for _ in range(3):
        result = await load(respond, stream=True, most=2)
        assert result.latency_ms.p50 >= 250
        firsts_ms.append(result.first_event_ms.p50)
        if firsts_ms[-1] < 200:  # else the machine may have paused
            break
    assert 50 <= min(firsts_ms) < 200


async def test_an_open_loop_sends_at_its_rate() -> None:
    """At 100 requests a second for half a second, 50 requests are sent, however fast the answers come."""
    result = await load(always(WHOLE), rate=100, seconds=0.5, most=-1)
    assert (result.sent, result.failures) == (50, 0)


async def test_an_open_loop_counts_from_the_instant_a_request_was_due() -> None:
    """A server that stalls once makes the requests behind it late too: their waiting is in their latency."""
    stalled = False

    async def respond(writer: asyncio.StreamWriter) -> None:
        nonlocal stalled
        if not stalled:
            stalled = True
            await asyncio.sleep(0.3)
        writer.write(WHOLE)

    result = await load(respond, connections=1, rate=100, seconds=0.5, most=-1)
    assert result.sent == 50
    assert result.latency_ms.p50 > 50


async def test_a_closed_loop_ends_with_its_time() -> None:
    """Without a limit on requests the client stops sending after its seconds and waits for what is open."""
    for _ in range(3):
        began = time.monotonic()
        result = await load(always(WHOLE), seconds=0.3, most=-1)
        took_s = time.monotonic() - began
        assert took_s >= 0.3
        assert result.sent == result.answered
        if took_s < 3 and result.sent > 10:  # else the machine may have paused
            return
    raise AssertionError(f"{result.sent} requests in {took_s} s")


async def test_nobody_listening_is_an_error() -> None:
    """A load on a closed port says so."""
    async with server(always(WHOLE)) as port:
        pass
    with pytest.raises(LoadError, match="connect"):
        await asyncio.to_thread(run_load, Load(port=port, body=b"{}", connections=1, seconds=1))
