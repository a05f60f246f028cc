"""The Redis client: what it sends together, and how it says that Redis is away."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gateway.queues import wire as wire_module
from gateway.queues.port import QueueUnavailable
from gateway.queues.scripts import script
from gateway.queues.wire import Wire, WireError
from gateway.stack.ports import free_port


@pytest.fixture
async def wire(redis_url: str) -> AsyncIterator[Wire]:
    wire = Wire(redis_url)
    yield wire
    await wire.close()


async def served(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> tuple[str, asyncio.Server]:
    """Run a server that is no Redis."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", server


async def test_answers_come_in_the_order_of_the_commands(wire: Wire) -> None:
    futures = [wire.call("ECHO", str(number)) for number in range(5000)]
    assert [int(answer) for answer in await asyncio.gather(*futures)] == list(range(5000))


async def test_the_commands_of_one_tick_leave_in_one_write(wire: Wire) -> None:
    await wire.call("PING")
    connection = wire._connection
    assert connection is not None
    writes: list[bytes] = []
    write = connection.write
    connection.write = lambda data: (writes.append(data), write(data))[1]  # type: ignore[method-assign]
    await asyncio.gather(*(wire.call("ECHO", str(number)) for number in range(100)))
    assert len(writes) == 1


async def test_parts_of_a_command_may_be_text_numbers_and_bytes(wire: Wire) -> None:
    blob = bytes(range(256)) * 4096
    await wire.call("HSET", "hash", "ä", 1, b"\x00\r\n", 2.5, "blob", blob)
    assert await wire.call("HGET", "hash", "ä") == b"1"
    assert await wire.call("HGET", "hash", b"\x00\r\n") == b"2.5"
    assert await wire.call("HGET", "hash", "blob") == blob


async def test_an_error_answer_fails_its_command_and_no_other(wire: Wire) -> None:
    good, bad, after = wire.call("SET", "text", "x"), wire.call("LPUSH", "text", "x"), wire.call("GET", "text")
    assert await good == b"OK"
    with pytest.raises(WireError, match="WRONGTYPE"):
        await bad
    assert await after == b"x"


async def test_a_command_whose_caller_left_disturbs_no_other(wire: Wire) -> None:
    left, stayed = wire.call("ECHO", "left"), wire.call("ECHO", "stayed")
    left.cancel()
    assert await stayed == b"stayed"


async def test_redis_being_away_is_one_error_and_soon() -> None:
    wire = Wire(f"redis://127.0.0.1:{free_port()}")
    took_s = []
    for _ in range(3):
        began_s = time.monotonic()
        with pytest.raises(QueueUnavailable, match="does not answer"):
            await wire.call("PING")
        took_s.append(time.monotonic() - began_s)
    assert min(took_s) < 1
    await wire.close()


async def test_a_wrong_password_is_said(redis_url: str) -> None:
    wire = Wire(redis_url.replace("redis://:", "redis://:wrong"))
    with pytest.raises(QueueUnavailable, match="refused"):
        await wire.call("PING")
    await wire.close()


async def test_a_silent_server_is_given_up() -> None:
    """A server that is stopped, or a line that is dead, fails what waits for it."""
    writers: list[asyncio.StreamWriter] = []

    async def greet_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        data = b""
        while data.count(b"LOAD") < len(wire_module.all_scripts()):
            data += await reader.read(65536)
        writer.write(b"+OK\r\n" * len(wire_module.all_scripts()))

    url, server = await served(greet_only)
    wire = Wire(url, answer_s=0.2)
    async with asyncio.timeout(30):
        with pytest.raises(QueueUnavailable, match="lost"):
            await wire.call("PING")
    await wire.close()
    server.close()
    for writer in writers:
        writer.close()


async def test_what_is_not_redis_is_left() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    url, server = await served(nonsense)
    wire = Wire(url)
    with pytest.raises(QueueUnavailable):
        await asyncio.wait_for(wire.call("PING"), 30)
    await wire.close()
    server.close()


async def test_what_waits_to_be_sent_is_bounded(wire: Wire) -> None:
    """Beyond 64 MiB commands are refused at once, and the others still arrive."""
    await wire.call("PING")
    blob = b"x" * (16 * 1024 * 1024)
    futures = [wire.call("SET", f"key{number}", blob) for number in range(8)]
    answers = await asyncio.gather(*futures, return_exceptions=True)
    assert {type(answer) for answer in answers[:4]} == {bytes}
    assert isinstance(answers[-1], QueueUnavailable)
    assert await wire.call("STRLEN", "key0") == len(blob)


async def test_a_closed_wire_refuses_and_leaves_nothing_behind(redis_url: str) -> None:
    wire = Wire(redis_url)
    pending = wire.call("BLPOP", "nothing", 0)
    await asyncio.sleep(0.1)
    await wire.close()
    with pytest.raises(QueueUnavailable):
        await pending
    with pytest.raises(QueueUnavailable):
        await wire.call("PING")
    gc.collect()


async def test_a_script_runs_whether_or_not_redis_knows_it(wire: Wire) -> None:
    keys = (b"queue", b"leases", b"attempts", b"jobs")
    for _ in range(2):
        assert await wire.run(script("standing"), keys, "req_x") == [b"absent", 0]
        await wire.call("SCRIPT", "FLUSH")
