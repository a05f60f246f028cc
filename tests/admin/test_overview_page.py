"""The overview: how to begin, six sentences with the worst first, tiles, the chart, and what moved."""

import csv
import io
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from gateway.admin.live.snapshot import PoolLine, Snapshot
from gateway.admin.pages.overview import sentences
from gateway.admin.pages.overview.sentences import Sentence, worst_first
from gateway.admin.site.period import read_period
from gateway.catalog.model import Model
from gateway.catalog.model import Snapshot as Catalog
from gateway.reports.budgets import NearBudgets
from gateway.reports.scope import Sums
from tests.system import System, running_system

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PERIOD = read_period({}, NOW)


CATALOG = Path(__file__).parents[1] / "browser" / "catalog.yaml"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a running system that nobody has called yet."""
    folder = tmp_path_factory.mktemp("overview")
    folder.chmod(0o711)
    with running_system(folder / "data", "--catalog", str(CATALOG)) as system:
        system.wait_ready("scribe")
        yield system


@contextmanager
def signed_in(system: System) -> Iterator[httpx.Client]:
    """A browser in which the owner of a running system is signed in."""
    with httpx.Client(base_url=system.base_url, timeout=60.0, follow_redirects=True) as client:
        page = client.get("/admin/sign-in").text
        token = re.search(r'name="csrf_token" value="([^"]+)"', page)
        assert token is not None
        form = {"csrf_token": token[1], "key": system.admin_key}
        assert client.post("/admin/sign-in", data=form).status_code == 200
        yield client


def settled(system: System) -> None:
    """Wait until nothing is held any more: all that was called has been charged, which comes after the answer."""
    end = time.monotonic() + 90
    with system.admin() as admin:
        while any(one["held_nanos"] for one in admin.get("/admin/api/accounts").json()["accounts"]):
            assert time.monotonic() < end, "the calls are not settled"
            time.sleep(0.05)


def test_the_first_steps_tick_themselves_off_and_give_way_to_the_overview(fresh: System) -> None:
    with signed_in(fresh) as client:
        page = client.get("/admin").text
        assert "Watch here" in page
        assert page.count("data-done") == 2, "there is a price and a key, and no request yet"
        assert 'hx-get="/admin/start"' in page
        with fresh.client() as caller:
            body = {"model": "scribe", "messages": [{"role": "user", "content": "hi"}]}
            assert caller.post("/v1/chat/completions", json=body).status_code == 200
        settled(fresh)
        part = client.get("/admin/start", headers={"hx-request": "true"})
        assert part.headers["hx-redirect"] == "/admin"
        page = client.get("/admin").text
        assert "Biggest movers" in page
        for words in (
            "Spend",
            "Requests",
            "Errors",
            "Margin",
            "scribe",
            "None of 1 requests failed.",
            "workers live",
        ):
            assert words in page
        assert page.count("<li data-tone=") == 6


def test_the_overview_is_data_too(fresh: System) -> None:
    with signed_in(fresh) as client, fresh.client() as caller:
        body = {"model": "scribe", "messages": [{"role": "user", "content": "hi"}]}
        assert caller.post("/v1/chat/completions", json=body).status_code == 200
        settled(fresh)
        told = client.get("/admin?format=json").json()
        assert len(told["sentences"]) == 6
        charged = sum(sums["charge_nanos"] for sums in told["series"]["total"])
        rows = list(csv.DictReader(io.StringIO(client.get("/admin?format=csv").text)))
        assert charged == sum(int(row["charge_nanos"]) for row in rows) > 0
        moved = {mover["label"]: mover["charge_nanos"] for mover in told["movers"]}
        assert moved["scribe"] == charged


def pool(name: str, *, waiting: int = 0, oldest_s: float = 0, paused: bool = False) -> PoolLine:
    return PoolLine(
        name=name, engine="fake", paused=paused, waiting=waiting, running=0, capacity=0, settling=0,
        oldest_at=NOW - timedelta(seconds=oldest_s) if waiting else None, is_whole=True, in_per_s=None,
        out_per_s=None, eta=None, trend=(), tenants=(), next_up=(), workers=(),
    )  # fmt: skip


def look(*pools: PoolLine, away: str = "") -> Snapshot:
    return Snapshot(number=1, at=NOW, looked_at=NOW, pools=pools, away=away)


def test_the_worst_sentence_comes_first() -> None:
    made = [Sentence(tone=tone, icon="", text=tone, href="") for tone in ("off", "good", "bad", "warn", "good")]
    assert [sentence.tone for sentence in worst_first(made)] == ["bad", "warn", "good", "good", "off"]


@pytest.mark.parametrize(
    ("snapshot", "tone", "said"),
    [
        (look(pool("a")), "good", "Nothing waits."),
        (look(pool("a", waiting=2, oldest_s=5), pool("b", waiting=1, oldest_s=9)), "good",
         "The oldest of 3 waiting requests has waited 9 s, in b."),
        (look(pool("a", waiting=2, oldest_s=95)), "warn",
         "The oldest of 2 waiting requests has waited 1 min 35 s, in a."),
        (look(pool("a", paused=True)), "warn", "Nothing waits; a paused."),
        (look(pool("a"), away="Redis"), "bad", "Redis is away, so nobody can say what waits."),
    ],
)  # fmt: skip
def test_the_oldest_that_waits_is_told(snapshot: Snapshot, tone: str, said: str) -> None:
    sentence = sentences.about_waiting(snapshot)
    assert (sentence.tone, sentence.text) == (tone, said)


@pytest.mark.parametrize(
    ("errors", "tone"),
    [(0, "good"), (9, "good"), (10, "warn"), (49, "warn"), (50, "bad"), (1000, "bad")],
)
def test_errors_are_told_against_last_week(errors: int, tone: str) -> None:
    sentence = sentences.about_errors(Sums(requests=1000, errors=errors), Sums(requests=100, errors=2), PERIOD)
    assert sentence.tone == tone
    assert sentence.text.endswith("of 1,000 requests failed; the same hours last week it was 2.0%.")


def test_a_pool_without_workers_is_bad_news_where_something_waits_in_it() -> None:
    assert sentences.about_workers(look(pool("a"))).tone == "warn"
    assert sentences.about_workers(look(pool("a", waiting=1))).tone == "bad"


def test_budgets_and_prices_are_told_by_name() -> None:
    near = NearBudgets(many=3, name="staging", kind="key", id=1, percent=97)
    assert sentences.about_budgets(near).text == "3 budgets are at 80% or more; the fullest is that of staging, at 97%."
    assert sentences.about_budgets(NearBudgets()).tone == "good"
    model = Model(name="sketcher", tasks=("text-to-image",), description="", routes=())
    catalog = Catalog(revision=1, models={"sketcher": model}, pools={}, prices={}, model_names={})
    said = "1 of 1 models has no price and cannot be called: sketcher."
    assert sentences.about_prices(catalog).text == said
