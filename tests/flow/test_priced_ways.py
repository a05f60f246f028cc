"""Prices with conditions over several ways: held for the dearest, charged by the row of the one that went."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import asyncpg
import httpx
import pytest

from gateway.contract.ids import uuid_of
from gateway.money import parse_usd
from tests.admin.conftest import token_of
from tests.flow.test_requests import finished
from tests.system import System, running_system
from tests.upstreams.openai import OpenAi, Way, until
from tests.upstreams.serving import HOST, standing

CATALOG = """
upstreams:
  good: {{protocol: openai, url: "{good}/v1", pool: far, timeout_s: 30}}
  bad: {{protocol: openai, url: "{bad}/v1", pool: far, timeout_s: 30}}
  late: {{protocol: openai, url: "{late}/v1", pool: far, timeout_s: 30}}
pools:
  far: {{engine: upstream, lease_ms: 30000, attempts: 1}}
  near: {{engine: fake, lease_ms: 30000}}
models:
  poster:
    tasks: [text-to-image]
    description: Draws elsewhere, priced by quality.
    deadline_s: 60
    price: &by_quality
      - {{usd: 0.08, per: image, when: {{quality: hd}}}}
      - {{usd: 0.04, per: image, when: {{quality: standard}}}}
    parameters: &looks
      size: {{type: string, default: 64x64}}
      quality: {{type: string, default: standard, choices: [low, standard, hd], priced: true}}
    routes: [{{upstream: good, model: draws}}]
  torn-poster:
    tasks: [text-to-image]
    description: Fails elsewhere, priced by quality.
    deadline_s: 60
    price: *by_quality
    parameters: *looks
    routes: [{{upstream: bad, model: breaks}}]
  late-poster:
    tasks: [text-to-image]
    description: Fails elsewhere and late; once, or its breaker would open.
    deadline_s: 60
    price: *by_quality
    parameters: *looks
    routes: [{{upstream: late, model: lingers}}]
  sketch:
    tasks: [text-to-image]
    description: Draws here, priced by width.
    deadline_s: 60
    price: &by_width
      - {{usd: 0.05, per: image, when: {{width: {{below: 100}}}}}}
      - {{usd: 0.30, per: image, when: {{width: {{from: 100, below: 600}}}}}}
    minimum_usd: 0.06
    parameters: &sizes
      size: {{type: string, default: 64x64}}
      quality: {{type: string}}
    routes: [{{pool: near}}]
  dearer-sketch:
    tasks: [text-to-image]
    description: Draws here, at a price that changes.
    deadline_s: 60
    price: *by_width
    minimum_usd: 0.06
    parameters: *sizes
    routes: [{{pool: near}}]
  clip:
    tasks: [text-to-video]
    description: Films, elsewhere first and then here, by resolution and duration.
    deadline_s: 60
    price:
      - {{usd: 0.20, per: video second, when: {{resolution: 1080p}}}}
      - {{usd: 0.10, per: video second, when: {{resolution: 720p, seconds: {{from: 2, below: 5}}}}}}
      - {{usd: 0.15, per: video second, when: {{resolution: 720p, seconds: {{below: 2}}}}}}
    parameters:
      size: {{type: string, default: 64x48}}
      fps: {{type: integer, default: 8}}
      seconds: {{type: number, default: 2}}
      resolution: {{type: string, default: 720p, choices: [720p, 1080p], priced: true}}
    routes: [{{upstream: bad, model: films, order: 0}}, {{pool: near, order: 1}}]
"""


class Ways:
    """A system, and the providers behind it: one that works, one that fails, one that fails late."""

    def __init__(self, system: System, good: OpenAi, bad: OpenAi, late: OpenAi) -> None:
        self.system, self.good, self.bad, self.late = system, good, bad, late

    def asked(self) -> int:
        """Count what the providers were asked for."""
        return len(self.good.bought()) + len(self.bad.bought())

    def settled(self, request_id: str) -> tuple[str, dict[str, Any]]:
        """Read what served a request, and the terms that lie beside its usage."""

        async def read() -> Any:
            connection = await asyncpg.connect(self.system.database_url)
            query = "select route, terms::text from usage where id = $1"
            row = await connection.fetchrow(query, uuid_of(request_id))
            await connection.close()
            return row

        route, terms = asyncio.run(read())
        return route, json.loads(terms)


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    folder = tmp_path_factory.mktemp("priced-ways")
    folder.chmod(0o711)
    good, bad, late = OpenAi(), OpenAi(), OpenAi()
    bad.usual, late.usual = Way(status=500), Way(status=500, wait_s=6.0)
    with standing(good), standing(bad), standing(late):
        catalog = folder / "catalog.yaml"
        catalog.write_text(CATALOG.format(good=good.url, bad=bad.url, late=late.url))
        environ = {f"FAREGATE_UPSTREAM_{name}_KEY": OpenAi.key for name in ("GOOD", "BAD", "LATE")}
        environ["FAREGATE_WORKER_FETCH_ALLOW"] = HOST
        options = ("--catalog", str(catalog))
        with running_system(folder / "data", *options, engines="fake,upstream", environ=environ) as running:
            running.wait_ready("poster", "torn-poster", "late-poster", "sketch", "dearer-sketch", "clip")
            yield Ways(running, good, bad, late)


@pytest.fixture
def payer(ways: Ways) -> tuple[int, str]:
    return ways.system.account(f"payer-{time.time_ns()}", "5")


@pytest.fixture
def client(ways: Ways, payer: tuple[int, str]) -> Iterator[httpx.Client]:
    with ways.system.client(payer[1]) as made:
        yield made


def submit(client: httpx.Client, model: str, *others: str, **given: Any) -> httpx.Response:
    body = {"model": model, "models": list(others), "input": {"prompt": "A tide."} | given}
    return client.post("/v1/requests", json=body)


def ended(client: httpx.Client, model: str, *others: str, **given: Any) -> dict[str, Any]:
    """Submit, and wait for the end; answers that with the hold of the beginning."""
    accepted = submit(client, model, *others, **given)
    assert accepted.status_code == 202, accepted.text
    shown = finished(client, accepted.json()["id"], within_s=60.0)
    return shown | {"held": accepted.json()["hold_nanos"]}


LARGE = {"size": "512x512"}


@pytest.mark.parametrize(
    ("first", "given", "held", "by", "charge"),
    [
        ("poster", {"quality": "hd"}, "0.08", "poster", "0.08"),
        ("poster", LARGE, "0.30", "poster", "0.04"),
        ("torn-poster", {"quality": "hd"}, "0.08", "sketch", "0.06"),
        ("torn-poster", LARGE, "0.30", "sketch", "0.30"),
        ("torn-poster", {"quality": "low"}, "0.06", "sketch", "0.06"),
        ("poster", {"size": "640x640", "quality": "hd"}, "0.08", "poster", "0.08"),
    ],
)
def test_the_row_of_the_model_that_went_is_charged_and_the_dearest_is_held(
    ways: Ways,
    client: httpx.Client,
    payer: tuple[int, str],
    *,
    first: str,
    given: dict[str, Any],
    held: str,
    by: str,
    charge: str,
) -> None:
    shown = ended(client, first, "sketch", **given)
    assert (shown["status"], shown["model"]) == ("succeeded", by), shown
    assert (shown["held"], shown["charge_nanos"]) == (parse_usd(held), parse_usd(charge))
    balance = ways.system.balance(payer[0])
    assert (balance["held_nanos"], balance["spent_nanos"]) == (0, parse_usd(charge))


def test_the_traits_that_each_price_looks_at_are_pinned(ways: Ways, client: httpx.Client) -> None:
    shown = ended(client, "torn-poster", "sketch", quality="hd", size="128x96")
    assert shown["charge_nanos"] == parse_usd("0.30")
    route, pinned = ways.settled(shown["id"])
    assert route == "near"
    assert pinned["traits"] == {"quality": "hd", "width": 128, "height": 96}
    assert list(pinned["others"].values()) == [{"width": 128, "height": 96}]
    assert list(pinned["others"]) == [str(shown["price_version"])]


def test_what_no_way_sells_is_refused_before_anything_runs(
    ways: Ways, client: httpx.Client, payer: tuple[int, str]
) -> None:
    before = ways.asked()
    refused = submit(client, "poster", "torn-poster", "sketch", quality="low", size="640x640")
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "not_priced")
    alone = submit(client, "clip", seconds=6)
    assert (alone.status_code, alone.json()["error"]["code"]) == (422, "not_priced")
    assert ways.asked() == before
    assert ways.system.balance(payer[0])["held_nanos"] == 0
    assert client.get("/v1/usage").json()["total"]["requests"] == 0


def test_where_the_only_way_that_sells_it_fails_nothing_is_charged(
    ways: Ways, client: httpx.Client, payer: tuple[int, str]
) -> None:
    shown = ended(client, "torn-poster", "sketch", quality="hd", size="640x640")
    assert (shown["status"], shown["charge_nanos"], shown["held"]) == ("failed", 0, parse_usd("0.08"))
    balance = ways.system.balance(payer[0])
    assert (balance["held_nanos"], balance["available_nanos"]) == (0, parse_usd("5"))


@pytest.mark.parametrize(
    ("given", "usd"),
    [
        ({}, "0.20"),
        ({"seconds": 1}, "0.15"),
        ({"seconds": 4}, "0.40"),
        ({"resolution": "1080p", "seconds": 1}, "0.20"),
    ],
)
def test_another_route_of_the_model_is_charged_by_the_same_row(
    ways: Ways, client: httpx.Client, given: dict[str, Any], usd: str
) -> None:
    shown = ended(client, "clip", **given)
    assert (shown["status"], shown["held"], shown["charge_nanos"]) == ("succeeded", parse_usd(usd), parse_usd(usd))
    route, pinned = ways.settled(shown["id"])
    assert route == "near"
    assert pinned["traits"]["seconds"] == given.get("seconds", 2)


def test_a_price_that_changes_on_the_way_counts_for_no_way_of_the_request(ways: Ways, client: httpx.Client) -> None:
    accepted = submit(client, "late-poster", "dearer-sketch", quality="hd").json()
    until(lambda: bool(ways.late.bought()), 30.0)
    dearer = {"usd": "0.5", "per": "image"}
    with ways.system.admin() as admin:
        for model in ("dearer-sketch", "late-poster"):
            told = admin.post("/admin/api/prices", json={"model": model, "price": [dearer], "reason": "test"})
            assert told.status_code == 201, told.text
    shown = finished(client, accepted["id"], within_s=60.0)
    assert (shown["model"], shown["charge_nanos"]) == ("dearer-sketch", parse_usd("0.06"))


def test_what_an_upstream_says_is_shown_as_text(ways: Ways, client: httpx.Client) -> None:
    evil = '=1"><script>alert(1)</script><img src=x onerror=alert(1)>'
    ways.bad.ways["breaks"] = Way(status=400, message=evil)
    shown = ended(client, "torn-poster", quality="hd")
    ways.bad.ways.clear()
    assert shown["status"] == "failed"
    with httpx.Client(base_url=ways.system.base_url, timeout=60.0) as operator:
        form = operator.get("/admin/sign-in")
        sent = {"csrf_token": token_of(form.text), "key": ways.system.admin_key}
        assert operator.post("/admin/sign-in", data=sent).status_code == 303
        page = operator.get(f"/admin/requests/{shown['id']}")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "<img src=x" not in page.text


def test_the_books_hold(ways: Ways) -> None:
    books = ways.system.run("books", "verify")
    assert books.returncode == 0, books.stdout
