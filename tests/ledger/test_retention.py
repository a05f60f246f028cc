"""No table grows for ever but those of money and audit: each has somebody who forgets, or a reason to stay."""

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from gateway.db.session import slow_engine
from gateway.db.tables import METADATA
from gateway.ledger import retention
from gateway.ledger.retention import ORDERS, RECORDS, SESSIONS, Retention

DAY_S = 86_400
STAYS = {
    "usage", "attempt", "ledger_entry", "refund", "price_version", "price_cancellation", "audit",
    "usage_rollup", *(name for name in METADATA.tables if name.startswith("rollup_")),
}  # fmt: skip
"""Money, what proves it, its sums, and who changed what."""
BY_COUNT = {
    "account", "api_key", "spending_limit", "rate_limit", "model", "pool", "upstream", "price_list", "revision",
}  # fmt: skip
"""As many rows as operators make things."""
SWEPT_ELSEWHERE = {
    "open_request", "request_payload", "request_way", "request_output", "idempotency", "file", "backtest",
    "webhook_event", "webhook_delivery", "webhook_secret",
}  # fmt: skip


@pytest.fixture
async def db(database_url: str) -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


def test_of_every_table_somebody_has_said_who_forgets_it_or_why_it_stays() -> None:
    forgotten = RECORDS.keys() | SESSIONS.keys() | ORDERS.keys()
    assert forgotten | STAYS | BY_COUNT | SWEPT_ELSEWHERE == set(METADATA.tables)
    assert not forgotten & STAYS


async def test_what_is_over_goes_and_what_is_young_or_waited_for_or_money_stays(
    database_url: str, db: asyncpg.Connection
) -> None:
    for age in (5, 15, 45):
        at = f"now() - interval '{age} days'"
        await db.execute(
            "insert into limit_alert (id, at, account_id, owner_id, used_nanos, limit_nanos, owner_kind, percent, "
            f"period) values ($1, {at}, 1, 1, 1, 2, 0, 50, 'day')",
            uuid4(),
        )
        for finished in (at, "null"):
            await db.execute(
                "insert into books_job (id, asked_at, finished_at, trigger, actor) "
                f"values ($1, {at}, {finished}, 'api', 'x')",
                uuid4(),
            )
        for outcome in ("ignored", "booked", "refused", "attention"):
            await db.execute(
                "insert into payment_event (provider, event_id, at, outcome) "
                f"values ('generic', 'event of {age} days, {outcome}', {at}, '{outcome}')"
            )
        await db.execute(
            "insert into books_run (id, at, took_ms, green, complete, trigger, report) "
            f"values ($1, {at} - interval '20 days', 1, true, true, 'schedule', '{{}}')",
            uuid4(),
        )
        for kind in ("operator", "owner"):
            await db.execute(
                "insert into web_session (token_hash, created_at, last_seen_at, expires_at, kind, actor, role, csrf) "
                f"values ($1, {at}, {at}, {at}, '{kind}', 'x', 'key', 'y')",
                uuid4().bytes,
            )
        for worker in ("", "w1"):
            await db.execute(
                "insert into pool_order (pool, worker, stands, seen_at, actor) "
                f"values ('text{age}', '{worker}', true, {at}, 'x')"
            )
    await db.execute("insert into pool_order (pool, worker, stands, actor) values ('text', 'w2', true, 'x')")
    engine = slow_engine(database_url)
    try:
        forgetting = Retention(engine, keep_records_s=10 * DAY_S)
        gone = {"limit_alert": 2, "books_job": 2, "books_run": 2, "payment_event": 2, "web_session": 2}
        gone["pool_order"] = 3
        assert await forgetting.round() == gone
        assert await forgetting.round() == dict.fromkeys(gone, 0)
    finally:
        await engine.dispose()
    counts = {table: await db.fetchval(f"select count(*) from {table}") for table in gone}
    assert counts == {"limit_alert": 1, "books_job": 4, "books_run": 1, "payment_event": 10, "web_session": 4} | {
        "pool_order": 4
    }
    assert await db.fetchval("select at > now() - interval '26 days' from books_run"), "the last verdict stays"


async def test_much_at_once_goes_in_many_transactions(
    database_url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MOST_AT_ONCE", 7)
    await db.execute(
        "insert into payment_event (provider, event_id, at, outcome) "
        "select 'generic', n::text, now() - interval '2 days', 'ignored' from generate_series(1, 30) n"
    )
    engine = slow_engine(database_url)
    try:
        assert (await Retention(engine, keep_records_s=DAY_S).round())["payment_event"] == 30
    finally:
        await engine.dispose()
