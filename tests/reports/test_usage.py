"""The usage report adds up what was charged, by any dimension, and shows a key only its own."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest

from gateway.contract.units import Units
from gateway.errors import InvalidRequest
from gateway.ledger.accounts import NewAccount
from gateway.ledger.keys import NewKey
from gateway.reports import usage as usage_module
from gateway.reports.query import read_admin_query, read_own_query
from gateway.reports.table import UsageTable
from gateway.reports.usage import UsageReport
from tests.ledger.scene import Scene


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


async def other_key(scene: Scene) -> int:
    """Let another account make a call; answers its key's id."""
    first = scene.account, scene.key
    scene.account = await scene.accounts.create(NewAccount(name="Bob", balance_nanos=10**9))
    scene.key = await scene.keys.create(NewKey(account_id=scene.account.id, name="bob's"))
    other = scene.key.id
    await scene.call("painter")
    scene.account, scene.key = first
    return other


async def ask(scene: Scene, **params: str) -> UsageTable:
    """Ask as an operator."""
    return await UsageReport(scene.engine).read(read_admin_query(params, datetime.now(UTC)))


async def test_groups_by_model_and_outcome_and_adds_up(scene: Scene) -> None:
    for _ in range(3):
        await scene.call(units=Units(input_tokens=10, output_tokens=7))
    await scene.call(outcome="failed")
    await scene.call("painter")
    table = await ask(scene, group_by="model,outcome")
    rows = {(row.model, row.outcome): row for row in table.rows}
    assert {key: row.requests for key, row in rows.items()} == {
        ("painter", "succeeded"): 1,
        ("talker", "failed"): 1,
        ("talker", "succeeded"): 3,
    }
    assert rows["painter", "succeeded"].charge_usd == "0.001"
    assert rows["talker", "failed"].charge_nanos == 0
    talker = rows["talker", "succeeded"]
    assert (talker.input_tokens, talker.output_tokens) == (30, 21)
    assert talker.charge_nanos == 3 * (10 * 150 + 7 * 600)
    assert talker.latency_us == 3 * 2100
    assert table.total.charge_nanos == (await scene.accounts.show(scene.account.id)).spent_nanos
    assert table.total.requests == 5


async def test_groups_by_day_hour_task_key_and_account(scene: Scene) -> None:
    await scene.call()
    await scene.call(task="completion")
    connection = await asyncpg.connect(scene.database_url)
    instants = [row["finished_at"] for row in await connection.fetch("select finished_at from usage")]
    await connection.close()
    assert [row.day for row in (await ask(scene, group_by="day")).rows] == sorted({at.date() for at in instants})
    hours = sorted({at.replace(minute=0, second=0, microsecond=0) for at in instants})
    assert [row.hour for row in (await ask(scene, group_by="hour")).rows] == hours
    assert [row.task for row in (await ask(scene, group_by="task")).rows] == ["chat", "completion"]
    (row,) = (await ask(scene, group_by="key,account")).rows
    assert (row.key_id, row.key_name, row.account_id, row.account_name) == (
        scene.key.id,
        "prod",
        scene.account.id,
        "Ada",
    )


async def test_without_groups_there_is_one_row_of_all(scene: Scene) -> None:
    assert (await ask(scene)).rows == []
    await scene.call()
    table = await ask(scene)
    assert [row.requests for row in table.rows] == [1]


async def test_filters_leave_only_what_they_name(scene: Scene) -> None:
    await scene.call()
    await scene.call(outcome="failed", task="completion")
    bobs_key = await other_key(scene)
    for params, requests in (
        ({}, 3),
        ({"account": str(scene.account.id)}, 2),
        ({"key": str(bobs_key)}, 1),
        ({"model": "painter"}, 1),
        ({"model": "unheard-of"}, 0),
        ({"task": "completion"}, 1),
        ({"outcome": "failed"}, 1),
        ({"outcome": "failed", "model": "painter"}, 0),
    ):
        assert (await ask(scene, **params)).total.requests == requests, params


async def test_a_key_sees_only_itself(scene: Scene) -> None:
    await scene.call()
    bobs_key = await other_key(scene)
    report = UsageReport(scene.engine)
    mine = await report.read(read_own_query({"group_by": "key,model"}, datetime.now(UTC), scene.key.id))
    bobs = await report.read(read_own_query({"group_by": "key,model"}, datetime.now(UTC), bobs_key))
    assert [(row.key_id, row.model) for row in mine.rows] == [(scene.key.id, "talker")]
    assert [(row.key_id, row.model) for row in bobs.rows] == [(bobs_key, "painter")]


async def test_only_the_hours_of_the_range_count(scene: Scene) -> None:
    await scene.call()
    connection = await asyncpg.connect(scene.database_url)
    await connection.execute(
        "insert into usage_rollup select '2026-01-31T23:00:00Z', account_id, api_key_id, model_id, task, outcome, "
        "5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 from usage_rollup"
    )
    await connection.close()
    assert (await ask(scene, **{"from": "2026-01-31", "to": "2026-02-01"})).total.requests == 5
    assert (await ask(scene, **{"from": "2026-02-01", "to": "2026-02-02"})).total.requests == 0
    assert (await ask(scene, **{"from": "2026-01-31T23:59:59Z", "to": "2026-02-01T00:00:00Z"})).total.requests == 5
    (row,) = (await ask(scene, **{"from": "2026-01-01", "to": "2026-02-02", "group_by": "day"})).rows
    assert str(row.day) == "2026-01-31"


async def test_a_report_that_is_too_long_is_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scene.call()
    await scene.call("painter")
    monkeypatch.setattr(usage_module, "MAX_ROWS", 1)
    with pytest.raises(InvalidRequest) as refused:
        await ask(scene, group_by="model")
    assert refused.value.code == "report_too_long"
    assert (await ask(scene)).total.requests == 2
