"""`faregate usage` and `faregate books verify`, over calls that were charged."""

import asyncio
import csv
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import asyncpg
import pytest
from structlog.testing import capture_logs

from gateway.db.session import slow_engine
from gateway.ledger.books.keeper import BooksKeeper
from gateway.ledger.books.verify import Books
from tests.commands.conftest import ADMIN_KEY, Command
from tests.ledger.scene import Scene


def test_usage_is_a_table_by_model_with_a_total(command: Command, calls: Scene) -> None:
    result = command("usage")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[1][:3] == ["model", "requests", "charged"]
    assert lines[2][:3] == ["painter", "1", "$0.001"]
    assert lines[3][:3] == ["talker", "2", "$0.0000114"]
    assert lines[4][:3] == ["total", "3", "$0.0010114"]


def test_usage_is_grouped_and_filtered_as_asked(command: Command, calls: Scene) -> None:
    asked = command("usage", "--group-by", "task,outcome", "--key", str(calls.key.id), "--json")
    report = json.loads(asked.stdout)
    assert [(row["task"], row["outcome"], row["requests"]) for row in report["rows"]] == [("chat", "succeeded", 3)]
    assert json.loads(command("usage", "--account", "99999", "--json").stdout)["total"]["requests"] == 0
    old = json.loads(command("usage", "--from", "2020-01-01", "--to", "2020-02-01", "--json").stdout)
    assert (old["from"], old["to"], old["rows"]) == ("2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z", [])


def test_usage_comes_as_csv(command: Command, calls: Scene) -> None:
    rows = list(csv.DictReader(io.StringIO(command("usage", "--csv").stdout)))
    assert [(row["model"], row["requests"], row["charge_nanos"]) for row in rows] == [
        ("painter", "1", "1000000"),
        ("talker", "2", "11400"),
    ]


def test_a_wrong_parameter_is_refused_in_the_servers_words(command: Command, calls: Scene) -> None:
    result = command("usage", "--group-by", "colour")
    assert result.exit_code == 1
    assert "'group_by' takes day, hour" in result.stderr


def test_the_books_are_verified_here_and_by_the_settler_of_a_distant_system(
    command: Command, calls: Scene, base_url: str, module_database_url: str
) -> None:
    here = command("books", "verify")
    assert here.exit_code == 0, here.output
    assert "The books hold." in here.stdout
    assert all(f"\nI{n} " in f"\n{here.stdout}" for n in range(1, 14))
    environ = {"FAREGATE_URL": base_url, "FAREGATE_ADMIN_KEY": ADMIN_KEY}
    with a_settler(module_database_url):
        away = command("books", "verify", "--json", env=environ, where=False)
        assert away.exit_code == 0, away.output
        assert json.loads(away.stdout)["holds"] is True
        asyncio.run(_execute(module_database_url, "update usage_rollup set requests = requests + 1"))
        broken = command("books", "verify", env=environ, where=False)
        asyncio.run(_execute(module_database_url, "update usage_rollup set requests = requests - 1"))
    assert broken.exit_code == 1
    assert "The books are broken: I13." in broken.stdout
    refused = command("books", "verify", "--allowed-repeats", "0", env=environ, where=False)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "with --data" in refused.stderr


def test_without_a_settler_it_does_not_wait_for_ever(
    command: Command, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.commands.books.STARTS_WITHIN_S", 1.0)
    environ = {"FAREGATE_URL": base_url, "FAREGATE_ADMIN_KEY": ADMIN_KEY}
    nobody = command("books", "verify", env=environ, where=False)
    assert nobody.exit_code == 2
    assert "is one running?" in nobody.stderr


class Silent:
    """Who is told of verdicts, and does nothing with them."""

    def books(self, green: bool, checked_at: datetime) -> None:
        pass


@contextmanager
def a_settler(database_url: str) -> Iterator[None]:
    """Let a settler's keeper of the books work in a thread of its own."""
    over = threading.Event()

    async def keep() -> None:
        engine = slow_engine(database_url, pool_size=2)
        books = Books(engine)
        keeper = BooksKeeper(engine, quick=books, complete=books, every_s=0, told=Silent())
        while not over.is_set():
            await keeper.round()
            await asyncio.sleep(0.1)
        await engine.dispose()

    thread = threading.Thread(target=lambda: asyncio.run(keep()))
    with capture_logs():  # a settler's own; the command's output is the test's
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60)


def test_broken_books_name_the_invariant_and_exit_with_1(
    command: Command, calls: Scene, module_database_url: str
) -> None:
    asyncio.run(_execute(module_database_url, "update usage_rollup set requests = requests + 1"))
    result = command("books", "verify")
    asyncio.run(_execute(module_database_url, "update usage_rollup set requests = requests - 1"))
    assert result.exit_code == 1
    assert "The books are broken: I13." in result.stdout


async def _execute(database_url: str, statement: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute(statement)
    await connection.close()
