"""Prices with conditions, minimums, lists and discounts, from the quote to the books; and prices that change."""

import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.money import parse_usd
from tests.system import System, running_system

CATALOG = Path(__file__).parent / "prices.yaml"
WAIT = {"prefer": "wait=60"}
WITHIN_S = 30.0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a running system that sells the painters."""
    folder = tmp_path_factory.mktemp("prices")
    folder.chmod(0o711)
    with running_system(folder / "data", "--catalog", str(CATALOG)) as running:
        running.wait_ready("painter", "plain-painter")
        yield running


def body(model: str = "painter", **fields: Any) -> dict[str, Any]:
    return {"model": model, "input": {"prompt": "A tide."} | fields}


def draw(client: httpx.Client, model: str = "painter", **fields: Any) -> dict[str, Any]:
    answer = client.post("/v1/requests", json=body(model, **fields), headers=WAIT)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def quoted(client: httpx.Client, model: str = "painter", **fields: Any) -> dict[str, Any]:
    answer = client.post("/v1/quotes", json=body(model, **fields))
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def changed(system: System, path: str, content: dict[str, Any]) -> dict[str, Any]:
    with system.admin() as client:
        answer = client.post(f"/admin/api{path}", json=content)
    assert answer.status_code in (200, 201), answer.text
    told: dict[str, Any] = answer.json()
    return told


def await_quote(client: httpx.Client, usd: str, model: str = "painter", **fields: Any) -> dict[str, Any]:
    """Wait until a quote comes to so much."""
    end = time.monotonic() + WITHIN_S
    while (shown := quoted(client, model, **fields))["ceiling_nanos"] != parse_usd(usd):
        assert time.monotonic() < end, shown
        time.sleep(0.02)
    return shown


@pytest.mark.parametrize(
    ("fields", "usd"),
    [({}, "0.05"), ({"n": 2}, "0.08"), ({"quality": "hd"}, "0.08"), ({"quality": "hd", "size": "512x512"}, "0.08")],
)
def test_a_request_costs_what_its_traits_say(shop: System, fields: dict[str, Any], usd: str) -> None:
    with shop.client() as client:
        quote = quoted(client, **fields)
        answer = draw(client, **fields)
    assert sum(Decimal(line["amount_usd"]) for line in quote["lines"]) == Decimal(usd)
    assert (quote["ceiling_nanos"], answer["charge_nanos"]) == (parse_usd(usd), parse_usd(usd))


def test_what_has_no_price_is_refused_before_anything_is_held(shop: System) -> None:
    account, key = shop.account("large", "1")
    with shop.client(key) as client:
        refused = client.post("/v1/requests", json=body(size="512x512"))
        also = client.post("/v1/quotes", json=body(size="512x512"))
    for answer in (refused, also):
        assert answer.status_code == 422
        assert answer.json()["error"]["code"] == "not_priced"
        assert "It is sold for quality hd; quality standard or low and width below 512" in answer.text
    assert shop.balance(account)["held_nanos"] == 0


def test_a_model_says_for_which_requests_its_prices_count(shop: System) -> None:
    with shop.client() as client:
        row = client.get("/v1/models/painter").json()
    assert [part.get("when") for part in row["price"]] == [
        {"quality": "hd"},
        {"quality": ["standard", "low"], "width": {"below": 512}},
    ]
    assert (row["minimum_usd"], row["discount"]) == ("0.05", None)


def test_an_account_pays_by_its_list_and_less_its_discount(shop: System) -> None:
    account, key = shop.account("partner", "1")
    changed(shop, "/price-lists", {"name": "partners"})
    row = {"usd": "0.03", "per": "image"}
    changed(shop, "/prices", {"model": "plain-painter", "price_list": "partners", "price": [row]})
    changed(shop, f"/accounts/{account}/pricing", {"price_list": "partners", "discount_ppm": 250_000})
    with shop.client(key) as client, shop.client() as other:
        quote = await_quote(client, "0.0225", "plain-painter")
        assert [line["unit"] for line in quote["lines"]] == ["image", "discount"]
        assert draw(client, "plain-painter")["charge_nanos"] == parse_usd("0.0225")
        assert draw(client, "painter", n=2)["charge_nanos"] == parse_usd("0.06")
        assert draw(other, "plain-painter")["charge_nanos"] == parse_usd("0.06")
        told = client.get("/v1/models/plain-painter").json()
        assert (told["price"][0]["usd"], told["discount"]) == ("0.03", "0.25")
        changed(shop, f"/accounts/{account}/pricing", {"price_list": None, "discount_ppm": 0})
        await_quote(client, "0.06", "plain-painter")
        kept = body("plain-painter") | {"quote": quote["id"]}
        redeemed = client.post("/v1/requests", json=kept, headers=WAIT).json()
    assert redeemed["charge_nanos"] == parse_usd("0.0225")


def test_a_price_that_is_published_is_the_next_requests(shop: System) -> None:
    with shop.client() as client:
        old = quoted(client, "plain-painter")
        content = {"model": "plain-painter", "price": [{"usd": "0.07", "per": "image"}], "base": old["price_version"]}
        began = time.monotonic()
        done = changed(shop, "/prices", content)
        new = await_quote(client, "0.07", "plain-painter")
        took_s = time.monotonic() - began
        assert new["price_version"] == done["price"]["id"]
        assert draw(client, "plain-painter")["charge_nanos"] == parse_usd("0.07")
        with shop.admin() as admin:
            end = time.monotonic() + WITHIN_S
            while (told := admin.get(f"/admin/api/prices/gateways?revision={done['revision']}").json())["having"] < 1:
                assert time.monotonic() < end
                time.sleep(0.05)
            again = admin.post("/admin/api/prices", json=content | {"price": [{"usd": "0.08", "per": "image"}]})
        changed(shop, f"/prices/{old['price_version']}/reinstate", {})
        await_quote(client, "0.06", "plain-painter")
    assert told["gateways"] == told["having"]
    assert took_s < WITHIN_S
    assert again.status_code == 409
    assert again.json()["error"]["details"]["yours"] == [{"field": "price per image", "old": "$0.06", "new": "$0.08"}]


def test_the_books_hold(shop: System) -> None:
    with shop.client() as client:
        draw(client, quality="hd")
    books = shop.run("books", "verify")
    assert books.returncode == 0, books.stdout
