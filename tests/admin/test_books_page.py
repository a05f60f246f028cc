"""The page Books: stored verdicts, what breaks them, verifying by a settler, corrections that sum to zero."""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from gateway.admin.pages.books import PAGES
from gateway.ledger.books.keeper import BooksKeeper
from gateway.ledger.books.runs import BooksRun, BooksRuns
from gateway.ledger.books.verify import Books
from tests.admin.conftest import SiteHouse, site_house, token_of
from tests.ledger.scene import USD, Scene


class Gauge:
    """What a settler's metrics were told."""

    def __init__(self) -> None:
        self.told: list[bool] = []

    def books(self, green: bool, checked_at: datetime) -> None:
        self.told.append(green)


class Room:
    """A business with a settler's keeper, and the dashboard over it."""

    def __init__(self, scene: Scene, house: SiteHouse) -> None:
        self.scene = scene
        self.house = house
        self.gauge = Gauge()
        self.runs = BooksRuns(scene.engine)

    def keeper(self, every_s: float = 0, later: timedelta = timedelta(0)) -> BooksKeeper:
        books = Books(self.scene.engine)
        return BooksKeeper(
            self.scene.engine,
            quick=books,
            complete=books,
            every_s=every_s,
            told=self.gauge,
            clock=lambda: datetime.now(UTC) + later,
        )

    async def verified(self) -> BooksRun:
        """Verify as the schedule does."""
        found = await self.keeper(3600, later=timedelta(days=2)).round()
        assert found is not None
        return found

    async def posted(self, client: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
        token = token_of((await client.get("/admin/books")).text)
        return await client.post(path, data={"csrf_token": token, **fields})


@pytest.fixture
async def room(database_url: str) -> AsyncIterator[Room]:
    scene = await Scene.open(database_url)
    await scene.call()
    await scene.call("painter")
    async with site_house(database_url, PAGES) as house:
        yield Room(scene, house)
    await scene.close()


async def test_before_the_first_verification_the_page_says_so(room: Room) -> None:
    async with room.house.operator("viewer") as client:
        page = await client.get("/admin/books")
        assert page.status_code == 200
        assert "have not been verified yet" in page.text
        assert "This needs the role billing or owner; yours is viewer." in page.text
        for path in ("/admin/books/verify", "/admin/books/correct"):
            assert (await client.get(path)).status_code == 403


async def test_green_books_show_every_invariant_with_its_figures(room: Room) -> None:
    run = await room.verified()
    assert run.green
    assert room.gauge.told[-1] is True
    async with room.house.operator("viewer") as client:
        page = await client.get("/admin/books")
        assert "The books hold" in page.text
        assert "Every row was gone through" in page.text
        for number in range(1, 14):
            assert f">I{number}<" in page.text
        assert "select coalesce(sum(held_nanos), 0)" in page.text  # the SQL stands beside the check
        told = (await client.get("/admin/books.json")).json()
        assert (told["green"], told["report"]["usage_rows"]) == (True, 2)
        rows = list(csv.DictReader(io.StringIO((await client.get("/admin/books.csv")).text)))
        assert {row["invariant"] for row in rows} == {f"I{n}" for n in range(1, 14)}
        spent = next(row for row in rows if row["left_name"] == "spent")
        assert (spent["unit"], spent["difference"]) == ("nanos", "0")


async def test_broken_books_are_red_first_and_open_what_breaks_them(room: Room) -> None:
    assert (await room.verified()).green
    await room.scene.tamper("update usage set charge_nanos = charge_nanos + 1 where model_id = 2")
    red = await room.runs.keep(await room.scene.books.verify(), "command", 5)
    assert not red.green
    async with room.house.operator("viewer") as client:
        text = (await client.get("/admin/books")).text
        assert "The books are broken" in text
        assert re.search(r'<a href="/admin/requests/req_[0-9a-f]{32}">', text)
        assert f'<a href="/admin/accounts/{room.scene.account.id}">' in text
        assert "give back what was too much by a refund" in text
        assert text.index(">broken<") < text.index(">holds<")
        assert "1 red" in text
        assert f'href="/admin/books/runs/{red.id}"' in text
        old = await client.get(f"/admin/books/runs/{red.id}")
        assert "The books are broken" in old.text
        assert (await client.get("/admin/books/runs/00000000-0000-7000-8000-000000000001")).status_code == 404


async def test_the_page_computes_nothing(room: Room) -> None:
    await room.verified()
    await room.scene.tamper("update account set spent_nanos = spent_nanos + 1")
    async with room.house.operator("viewer") as client:
        assert "The books hold" in (await client.get("/admin/books")).text


async def test_verify_now_is_done_by_one_settler_with_progress(room: Room) -> None:
    async with room.house.operator("billing") as client:
        assert "goes through every row" in (await client.get("/admin/books/verify")).text
        asked = await room.posted(client, "/admin/books/verify")
        assert asked.status_code == 303
        job = asked.headers["location"]
        assert "Waiting for a settler" in (await client.get(job)).text
        again = await room.posted(client, "/admin/books/verify")
        assert again.headers["location"] == job  # nobody waits twice
        found = [one for one in await asyncio.gather(*(room.keeper().round() for _ in range(3))) if one]
        assert len(found) == 1
        part = await client.get(f"{job}/progress", headers={"hx-request": "true", "hx-target": "job"})
        assert part.headers["hx-redirect"] == f"/admin/books/runs/{found[0].id}"
        done = await client.get(job)
        assert (done.status_code, done.headers["location"]) == (303, f"/admin/books/runs/{found[0].id}")
        shown = await client.get(done.headers["location"])
        assert "The books hold" in shown.text
    assert found[0].trigger == "dashboard"
    assert await room.keeper().round() is None


async def test_a_verification_whose_settler_died_is_begun_again(room: Room) -> None:
    async with room.house.operator("billing") as client:
        job = (await room.posted(client, "/admin/books/verify")).headers["location"]
        number = job.rpartition("/")[2]
        await _execute(
            room,
            "update books_job set started_at = now(), beat_at = now(), steps_done = 1, steps_in_all = 4 "
            f"where id = '{number}'",
        )
        assert "1 of 4 steps" in (await client.get(job)).text
        assert await room.keeper().round() is None
        await _execute(room, "update books_job set beat_at = now() - interval '2 min'")
        assert await room.keeper().round() is not None


async def test_the_schedule_goes_through_the_latest_rows_and_once_a_day_through_all(room: Room) -> None:
    first = await room.keeper(3600).round()
    assert first is not None
    assert first.complete
    assert await room.keeper(3600).round() is None  # not due
    second = await room.keeper(3600, later=timedelta(hours=2)).round()
    assert second is not None
    assert not second.complete
    assert second.report.rows_since is not None
    third = await room.keeper(3600, later=timedelta(hours=26)).round()
    assert third is not None
    assert third.complete
    assert await room.keeper(0, later=timedelta(days=9)).round() is None  # 0 is off


async def test_days_apart_find_what_one_snapshot_finds(room: Room) -> None:
    """Rows of long ago, and of the future, are gone through too; sums see what a window leaves out."""
    await room.scene.tamper(
        "update usage set finished_at = finished_at - interval '3 days', charge_nanos = charge_nanos + 1 "
        "where model_id = 1",
        "update ledger_entry set at = at + interval '9 days' where kind = 0 and account_id > 0",
    )
    whole = await room.scene.books.verify()
    steps: list[tuple[int, int]] = []

    async def progress(done: int, in_all: int) -> None:
        steps.append((done, in_all))

    by_days = await room.scene.books.verify_by_days(None, progress)

    def broken(report: Any) -> set[str]:
        return {one.statement for one in report.checks if one.verdict == "broken"}

    assert broken(whole) <= broken(by_days)
    assert len(steps) >= 4
    latest = await room.scene.books.verify_by_days(datetime.now(UTC) - timedelta(hours=1), progress)
    assert "Each account has spent what its usage rows were charged, less what was refunded of them." in broken(latest)


async def test_a_correction_is_reviewed_in_figures_and_booked_once(room: Room) -> None:
    account = room.scene.account.id
    fields = {
        "first_side": f"account:{account}",
        "first_usd": "2.50",
        "second_side": "outside",
        "second_usd": "-2.50",
        "reason": "an invoice was booked twice",
    }
    before = (await room.scene.accounts.show(account)).available_nanos
    async with room.house.operator("billing") as client:
        assert "Two sides, in sum zero" in (await client.get("/admin/books/correct")).text
        review = await client.get("/admin/books/correct/review", params=fields)
        assert review.status_code == 200
        assert f"account:{account} gets $2.50." in review.text
        hidden = dict(re.findall(r'<input type="hidden" name="([a-z_]+)" value="([^"]*)">', review.text))
        assert hidden["transaction_id"]
        done = await client.post("/admin/books/correct", data=hidden)
        assert done.status_code == 303
        page = await client.get("/admin/books")
        assert "an invoice was booked twice" in page.text
        assert "The correction is booked." in page.text
        assert re.search(r'<a href="/admin/audit/[0-9]+">Audit entry</a>', page.text)
        assert (await client.post("/admin/books/correct", data=hidden)).status_code == 303  # a double click
        assert (await room.scene.accounts.show(account)).available_nanos == before + 5 * USD // 2
        rows = list(csv.DictReader(io.StringIO((await client.get("/admin/books/corrections.csv")).text)))
        assert [(row["side"], row["amount_nanos"]) for row in rows] == [
            (f"account:{account}", "2500000000"),
            ("outside", "-2500000000"),
        ]
    assert (await room.scene.books.verify()).holds


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"second_usd": "-2.49"}, "must sum to zero"),
        ({"second_side": "nowhere"}, "A side is"),
        ({"first_usd": "1e-10"}, "An amount in US dollars"),
        ({"reason": ""}, "needs its reason"),
        ({"second_side": "account:999"}, "no such account"),
    ],
)
async def test_a_wrong_correction_comes_back_with_its_fields(room: Room, wrong: dict[str, str], said: str) -> None:
    fields = {
        "first_side": "revenue",
        "first_usd": "2.50",
        "second_side": "outside",
        "second_usd": "-2.50",
        "reason": "because",
    } | wrong
    async with room.house.operator("billing") as client:
        review = await client.get("/admin/books/correct/review", params=fields)
        assert review.status_code >= 400
        assert said in review.text
        posted = await room.posted(client, "/admin/books/correct", **fields)
        assert posted.status_code >= 400
        assert (await client.get("/admin/books/corrections.json")).json()["corrections"] == []


async def test_lists_are_paged_and_come_as_data(room: Room) -> None:
    async with room.house.operator("viewer") as client:
        for kind in ("refunds", "corrections", "payments"):
            page = await client.get(f"/admin/books/{kind}")
            assert page.status_code == 200, page.text
            assert (await client.get(f"/admin/books/{kind}.json")).json() == {kind: [], "next_after": None}
            assert (await client.get(f"/admin/books/{kind}.csv")).text.startswith("at,")
            assert (await client.get(f"/admin/books/{kind}?after=x")).status_code == 400


async def _execute(room: Room, statement: str) -> None:
    connection = await asyncpg.connect(room.scene.database_url)
    await connection.execute(statement)
    await connection.close()
