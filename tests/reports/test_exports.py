"""Exports hold every request of their filter once, in every format, and stop when nobody reads on."""

import asyncio
import csv
import io
import json
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gateway.errors import TooManyRequests
from gateway.ledger.accounts import NewAccount
from gateway.ledger.keys import NewKey
from gateway.reports.exports.columns import ADMIN_COLUMNS, OWN_COLUMNS, csv_cell, json_row
from gateway.reports.exports.copying import CSV, LINES
from gateway.reports.exports.exports import ExportFormat, Exports
from gateway.reports.ranges import Range
from gateway.reports.request_filter import RequestFilter
from tests.ledger.scene import Scene


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


def around_now(**owner: Any) -> RequestFilter:
    now = datetime.now(UTC)
    return RequestFilter(range=Range(now - timedelta(days=1), now + timedelta(days=1)), **owner)


async def exported(scene: Scene, kind: ExportFormat, wanted: RequestFilter, columns: Any = ADMIN_COLUMNS) -> bytes:
    return b"".join([piece async for piece in await Exports(scene.database_url).open(wanted, columns, kind)])


async def many(scene: Scene, copies: int) -> None:
    """Write the rows of usage again, many times, under ids of their own."""
    connection = await asyncpg.connect(scene.database_url)
    rows = await connection.fetch(
        "select column_name from information_schema.columns where table_name = 'usage' order by ordinal_position"
    )
    names = [row["column_name"] for row in rows]
    shown = ["uuidv7()" if name == "id" else name for name in names]
    await connection.execute(
        f"insert into usage ({', '.join(names)}) select {', '.join(shown)} from usage, generate_series(1, $1)", copies
    )
    await connection.close()


def read_parquet(data: bytes) -> list[dict[str, Any]]:
    reader = pytest.importorskip("arro3.io").read_parquet(io.BytesIO(data))
    table = reader.read_all()
    columns = {name: [value.as_py() for value in table[name]] for name in table.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


async def test_all_formats_say_the_same(scene: Scene) -> None:
    scene.key = await scene.keys.create(NewKey(account_id=scene.account.id, name='=HYPERLINK("x"),\n@'))
    ids = [await scene.call(cost_nanos=cost) for cost in (None, 5)] + [await scene.call("painter", outcome="failed")]
    wanted = around_now()
    lines = [json.loads(line) for line in (await exported(scene, "jsonl", wanted)).splitlines()]
    assert [line["id"] for line in lines] == sorted(ids, reverse=True)
    assert json.loads(await exported(scene, "json", wanted)) == lines
    text = (await exported(scene, "csv", wanted)).decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(rows[0]) == [column.name for column in ADMIN_COLUMNS] == list(lines[0])
    for row, line in zip(rows, lines, strict=True):
        expected = {name: "" if value is None else str(value) for name, value in line.items()}
        assert row == expected | {"key": "'" + expected["key"]}
    columns = read_parquet(await exported(scene, "parquet", wanted))
    for packed, line in zip(columns, lines, strict=True):
        assert packed["created_at"] == datetime.fromisoformat(line["created_at"])
        times = {"created_at", "finished_at"}
        assert {name: value for name, value in packed.items() if name not in times} == {
            name: value for name, value in line.items() if name not in times
        }


async def test_json_holds_what_would_break_it(scene: Scene) -> None:
    """Quotes, backslashes, line ends and control characters in what others chose; and figures that nobody knows."""
    name = '"quoted" \\ \t\n\x01\x02\x7f \u2028 Söhne'
    scene.key = await scene.keys.create(NewKey(account_id=scene.account.id, name=name))
    await scene.call()
    for kind in ("jsonl", "json"):
        found = json.loads(await exported(scene, kind, around_now()))
        (row,) = found if kind == "json" else [found]
        assert row["key"] == name
        assert (row["cost_nanos"], row["margin_nanos"]) == (None, None)
        assert (row["charge_nanos"], row["charge_usd"]) == (5700, "0.0000057")


async def test_json_costs_postgres_little_more_than_csv(scene: Scene) -> None:
    """By the time that its process works, which other processes on the machine do not stretch."""
    await scene.call(cost_nanos=5)
    await many(scene, 40_000)
    connection = await asyncpg.connect(scene.database_url)
    pid = await connection.fetchval("select pg_backend_pid()")
    rows = "(select u.* from usage u order by u.id desc) u"

    async def read(_: bytes) -> None:
        pass

    async def worked(shown: str, options: dict[str, Any]) -> float:
        before = worked_s(pid)
        await connection.copy_from_query(f"select {shown} from {rows}", output=read, **options)
        return worked_s(pid) - before

    as_csv, as_json = ", ".join(csv_cell(column) for column in ADMIN_COLUMNS), json_row(ADMIN_COLUMNS)
    times = [(await worked(as_csv, CSV), await worked(as_json, LINES)) for _ in range(3)]
    await connection.close()
    assert min(lines for _, lines in times) < 1.8 * min(table for table, _ in times), times


def worked_s(pid: int) -> float:
    """Give the processor time of a process of this machine."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "parquet"])
async def test_an_export_of_nothing_is_whole(scene: Scene, kind: ExportFormat) -> None:
    data = await exported(scene, kind, around_now())
    if kind == "json":
        assert json.loads(data) == []
    elif kind == "parquet":
        assert read_parquet(data) == []
    else:
        assert len(data.splitlines()) == (1 if kind == "csv" else 0)


async def test_an_owner_gets_their_own_rows_without_costs_and_routes(scene: Scene) -> None:
    mine = await scene.call()
    other = await scene.accounts.create(NewAccount(name="Bob", balance_nanos=10**9))
    scene.account, scene.key, kept = other, await scene.keys.create(NewKey(account_id=other.id)), scene.key
    await scene.call()
    (line,) = (await exported(scene, "jsonl", around_now(key_id=kept.id), OWN_COLUMNS)).splitlines()
    assert (await exported(scene, "jsonl", around_now(account_id=kept.account_id), OWN_COLUMNS)).splitlines() == [line]
    row = json.loads(line)
    assert row["id"] == mine
    assert not {"cost_nanos", "margin_nanos", "route", "worker", "account", "attempts"} & set(row)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
async def test_who_leaves_stops_the_statement_and_frees_the_place(scene: Scene, kind: ExportFormat) -> None:
    await scene.call()
    await many(scene, 120_000)
    exports = Exports(scene.database_url)
    streams = [await exports.open(around_now(), ADMIN_COLUMNS, kind) for _ in range(2)]
    for stream in streams:
        assert await anext(stream)
    with pytest.raises(TooManyRequests):
        await exports.open(around_now(), ADMIN_COLUMNS, kind)
    for stream in streams:
        await stream.aclose()
    connection = await asyncpg.connect(scene.database_url)
    query = "select count(*) from pg_stat_activity where application_name = 'faregate export' "
    query += "and datname = current_database()"  # other processes of the run have exports of their own
    async with asyncio.timeout(60):
        while await connection.fetchval(query):
            await asyncio.sleep(0.05)
    await connection.close()
    again = await exports.open(around_now(), ADMIN_COLUMNS, kind)
    assert await anext(again)
    await again.aclose()
