"""When the books break, or hold again, the operator's address is told: once, signed, and again while it fails."""

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from gateway.ledger.books.figures import BooksReport
from gateway.ledger.books.runs import BooksRuns
from gateway.net.addresses import Allowed
from gateway.net.client import guarded_client
from gateway.webhooks.alerts import BooksAlerts
from tests.ledger.scene import Scene
from tests.webhooks.receiver import Receiver, verify

KEY = b"k" * 32
SECRET = "whsec_" + base64.b64encode(KEY).decode()


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    await made.call()
    yield made
    await made.close()


async def kept(scene: Scene, *, broken: bool) -> BooksReport:
    """Verify and keep, with the books as they are or broken for the moment."""
    runs = BooksRuns(scene.engine)
    async with scene.tampering("update usage_rollup set requests = requests + 1" if broken else "select 1") as within:
        report = await scene.books.verify_in(within)
    assert report.holds is not broken
    await runs.keep(report, "command", 1)
    return report


async def sent(scene: Scene, url: str, allowed: str = "127.0.0.1", most: int = 1) -> int:
    """Let some settlers look for what is due."""
    async with guarded_client(Allowed.parse(allowed), timeout_s=60.0) as client:
        alerts = [
            BooksAlerts(scene.engine, client, url=url, key=KEY, base_url="https://fare.example", timeout_s=60.0)
            for _ in range(most)
        ]
        return sum(await asyncio.gather(*(each.round() for each in alerts)))


async def test_each_turn_is_told_once_and_signed(scene: Scene) -> None:
    async with Receiver() as receiver:
        await kept(scene, broken=False)
        assert await sent(scene, receiver.url) == 0  # green from the begin is no news
        await kept(scene, broken=True)
        await kept(scene, broken=True)
        assert await sent(scene, receiver.url, most=3) == 1
        await kept(scene, broken=False)
        assert await sent(scene, receiver.url) == 1
        first, second = receiver.posts
        assert verify(SECRET, first)
        assert (first.told["type"], second.told["type"]) == ("books.broken", "books.hold")
        assert [one["invariant"] for one in first.told["data"]["broken"]] == ["I13"]
        assert first.told["data"]["url"].startswith("https://fare.example/admin/books/runs/")
        assert first.id != second.id


async def test_what_fails_is_told_again_later_under_the_same_id(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.webhooks.alerts.next_s", lambda tries: 3600.0)  # no pause ends by itself
    async with Receiver(500, 200) as receiver:
        await kept(scene, broken=True)
        assert await sent(scene, receiver.url) == 1
        assert await sent(scene, receiver.url) == 0  # its pause is not over
        async with scene.engine.begin() as connection:
            await connection.execute(text("update books_run set alert_due_at = now() where alert_due_at is not null"))
        assert await sent(scene, receiver.url) == 1
        assert await sent(scene, receiver.url) == 0
        assert len(set(receiver.ids)) == 1
        assert len(receiver.ids) == 2


async def test_addresses_inside_are_told_nothing_unless_they_are_allowed(scene: Scene) -> None:
    async with Receiver() as receiver:
        await kept(scene, broken=True)
        assert await sent(scene, receiver.url, allowed="") == 1
        assert receiver.posts == []
