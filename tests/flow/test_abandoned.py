"""A caller who leaves while its hold is being set aside gets it back at once, and not at its deadline."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from gateway.app.parts import Parts
from gateway.app.running import running
from gateway.catalog.load import load_file
from gateway.catalog.store import apply
from gateway.contract.inputs import ChatInput
from gateway.contract.inputs.text import Message
from gateway.flow.call import Call
from gateway.flow.hand_over import Arrivals
from gateway.flow.settle import Settler
from gateway.ledger.accounts import Accounts, NewAccount
from gateway.ledger.keys import Keys, NewKey
from gateway.ledger.settlement import Settlement
from gateway.process import is_away
from gateway.settings import Settings
from gateway.settler_metrics import SettlerMetrics

CATALOG = Path(__file__).parents[2] / "catalog.yaml"
WAITERS = "select count(*) from pg_locks where not granted and transactionid = pg_current_xact_id()::xid"
"""Those who wait for this very transaction: others of the same server have locks of their own."""


async def settle_all(parts: Parts, database_url: str) -> None:
    """Settle what comes, until one request was settled."""
    settlement = Settlement(database_url)
    metrics = SettlerMetrics()
    settler = Settler(
        queues=Arrivals(
            queues=parts.settler_side,
            queue=parts.queues.pool,
            open_requests=parts.open_requests,
            snapshot=parts.catalog.snapshot,
            metrics=metrics,
        ),
        settlement=settlement,
        snapshot=parts.catalog.snapshot,
        refresh=parts.catalog.refresh,
        is_away=is_away,
        batch=10,
        metrics=metrics,
    )
    async with asyncio.timeout(60):
        while not await settler.round(wait_s=0.2):
            pass
    await settlement.close()


async def test_a_caller_who_leaves_during_admission_gets_the_hold_back_at_once(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        database_url=database_url, redis_url=redis_url, admin_key="k" * 20, blob_url=str(tmp_path / "blobs")
    )
    parts = Parts(settings)
    await apply(parts.engine, load_file(CATALOG), source="test")
    account = await Accounts(parts.engine).create(NewAccount(name="Ada", balance_nanos=10**9))
    key = await Keys(parts.engine).create(NewKey(account_id=account.id))
    given = ChatInput(messages=[Message(role="user", content="hello")])
    call = Call(secret=key.key, model="fake-chat", task="chat", input=given)
    async with running(parts):
        db = await asyncpg.connect(database_url)
        transaction = db.transaction()
        await transaction.start()
        await db.execute("select from account for update")
        submitting = asyncio.create_task(parts.way.submit(call))
        async with asyncio.timeout(60):
            while not await db.fetchval(WAITERS):
                await asyncio.sleep(0.02)
        submitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await submitting
        await transaction.rollback()
        await settle_all(parts, database_url)
        row = await db.fetchrow("select available_nanos, held_nanos, spent_nanos from account")
        assert tuple(row) == (10**9, 0, 0)
        assert await db.fetchval("select count(*) from open_request") == 0
        assert await db.fetchval("select worker from usage") == ""
        await db.close()
