"""Admission when callers leave and Postgres goes: nothing is held in secret, and it comes back by itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from gateway.errors import Unavailable
from gateway.ledger.admission import Admission, Opening
from tests.ledger.till import HOLD, Till, opened

SESSIONS = (
    "select pid from pg_stat_activity where application_name = 'faregate admission' and datname = current_database()"
)


@pytest.fixture
async def till(module_database_url: str) -> AsyncIterator[Till]:
    async with Till(module_database_url, empty=True) as made:
        yield made


@asynccontextmanager
async def accounts_locked(till: Till) -> AsyncIterator[None]:
    """Hold every account's row, so that admission stands still in Postgres."""
    other = await asyncpg.connect(till.database_url)
    async with other.transaction():
        await other.execute("select from account for update")
        yield
    await other.close()


async def end_sessions(till: Till) -> None:
    """Let Postgres end the sessions of admission, as a restart does."""
    assert await till.db.fetch(SESSIONS.replace("pid", "pg_terminate_backend(pid)", 1))


async def in_postgres(till: Till, waiting: int = 1) -> None:
    """Return when that many sessions of admission wait for a lock."""
    query = f"{SESSIONS} and wait_event_type = 'Lock'"
    async with asyncio.timeout(60):
        while len(await till.db.fetch(query)) < waiting:
            await asyncio.sleep(0.01)


async def test_a_caller_who_leaves_while_his_batch_is_under_way_leaves_a_request_that_is_told(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    abandoned: list[Opening] = []
    admission = Admission(till.database_url, abandoned=abandoned.append)
    leaving, staying = opened(payer), opened(payer)
    async with accounts_locked(till):
        calls = [asyncio.create_task(admission.admit(one)) for one in (leaving, staying)]
        await in_postgres(till)
        calls[0].cancel()
    assert await calls[1] == ()
    with pytest.raises(asyncio.CancelledError):
        await calls[0]
    await admission.close()
    assert abandoned == [leaving]
    assert await till.count("open_request") == 2
    assert await till.broken_books() == []


async def test_a_caller_who_leaves_before_his_request_was_sent_leaves_nothing(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    async with accounts_locked(till):
        first = asyncio.create_task(till.admit(payer))
        await in_postgres(till)
        second = asyncio.create_task(till.admit(payer))
        await asyncio.sleep(0)
        second.cancel()
    await first
    await till.admit(payer)
    assert second.cancelled()
    assert await till.count("open_request") == 2


async def test_a_session_that_is_ended_under_way_is_a_503_and_the_next_call_goes_through(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    async with accounts_locked(till):
        calls = [asyncio.create_task(till.admit(payer)) for _ in range(3)]
        await in_postgres(till)
        await end_sessions(till)
        ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end) for end in ends] == [Unavailable] * 3
    assert len({id(end) for end in ends}) == 3
    await till.admit(payer)
    assert await till.money(payer[0]) == (9 * HOLD, HOLD, 0)


async def test_a_session_that_was_ended_while_nobody_called_is_not_noticed(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    await till.admit(payer)
    connection = till.admission._session._connection
    assert connection is not None
    await end_sessions(till)
    async with asyncio.timeout(60):
        while not connection.is_closed():  # its end has arrived, and nobody has looked at it
            await asyncio.sleep(0.01)
    await till.admit(payer)


async def test_without_a_database_every_call_is_a_503(till: Till, unused_tcp_port: int) -> None:
    admission = Admission(f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/nothing")
    payer = await till.payer(10 * HOLD)
    calls = [admission.admit(opened(payer)) for _ in range(3)]
    assert [type(end) for end in await asyncio.gather(*calls, return_exceptions=True)] == [Unavailable] * 3
    await admission.close()


async def test_after_closing_nothing_is_admitted(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    last = asyncio.create_task(till.admit(payer))
    await asyncio.sleep(0)
    await till.admission.close()
    assert isinstance(await last, str)
    with pytest.raises(Unavailable):
        await till.admit(payer)
