"""A quote: what a request would cost at most, and a price that is kept until it expires."""

import re
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.system import System, running_system

CHAT = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 50}
BODY = {"model": "fake-stream", "input": CHAT}


def test_a_quote_says_the_ceiling_line_by_line_and_holds_nothing(system: System) -> None:
    account, key = system.account("quoted", "1")
    with system.client(key) as client:
        answer = client.post("/v1/quotes", json=BODY)
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        assert sum(Decimal(line["amount_usd"]) for line in shown["lines"]) == Decimal(shown["ceiling_usd"])
        assert {line["unit"] for line in shown["lines"]} == {"input_token", "output_token"}
        assert (shown["model"], shown["task"]) == ("fake-stream", "chat")
        held = client.post("/v1/requests", json=BODY | {"quote": shown["id"]}).json()
    assert held["hold_nanos"] == shown["ceiling_nanos"]
    assert held["price_version"] == shown["price_version"]
    assert system.balance(account)["held_nanos"] in (0, shown["ceiling_nanos"])


def test_a_quote_costs_nothing_even_to_an_account_without_money(system: System) -> None:
    account, key = system.account("window-shopper", "0")
    with system.client(key) as client:
        assert client.post("/v1/quotes", json=BODY).status_code == 200
        refused = client.post("/v1/requests", json=BODY)
    assert refused.status_code == 402
    assert system.balance(account)["held_nanos"] == 0


def test_a_quoted_price_outlives_a_change_of_the_price(tmp_path: Path) -> None:
    body = {"model": "fake-chat", "input": CHAT}
    wait = {"prefer": "wait=60"}
    with running_system(tmp_path / "data") as system:
        with system.client() as client:
            quote = client.post("/v1/quotes", json=body).json()
        raise_price(system, tmp_path / "catalog.yaml")
        client = system.client()
        end = time.monotonic() + 60
        while (now := client.post("/v1/quotes", json=body).json())["price_version"] == quote["price_version"]:
            assert time.monotonic() < end
            time.sleep(0.05)
        redeemed = client.post("/v1/requests", json=body | {"quote": quote["id"]}, headers=wait).json()
        plain = client.post("/v1/requests", json=body, headers=wait).json()
        client.close()
        books = system.run("books", "verify")
    assert now["ceiling_nanos"] == 7 * quote["ceiling_nanos"]
    assert (redeemed["charge_nanos"], redeemed["price_version"]) == (quote["ceiling_nanos"], quote["price_version"])
    assert (plain["charge_nanos"], plain["price_version"]) == (now["ceiling_nanos"], now["price_version"])
    assert books.returncode == 0, books.stdout


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"input": CHAT | {"max_tokens": 51}}, 422, "quote_mismatch"),
        ({"model": "fake-chat"}, 422, "quote_mismatch"),
        ({"quote": "quo_"}, 404, "quote_not_found"),
        ({"quote": "quo_AAAA"}, 404, "quote_not_found"),
        ({"quote": "req_019a0000000070008000000000000001"}, 404, "quote_not_found"),
        ({"quote": "quo_" + "é" * 40}, 404, "quote_not_found"),
        ({"quote": 7}, 400, "invalid_request"),
    ],
)
def test_a_quote_serves_for_what_was_quoted_only(
    system: System, change: dict[str, Any], status: int, code: str, request: pytest.FixtureRequest
) -> None:
    account, key = system.account(request.node.name, "1")
    with system.client(key) as client:
        quote = client.post("/v1/quotes", json=BODY).json()["id"]
        answer = client.post("/v1/requests", json=BODY | {"quote": quote} | change)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert system.balance(account)["held_nanos"] == 0


def test_the_order_of_fields_makes_no_other_input(system: System) -> None:
    _, key = system.account("sorter", "1")
    turned = dict(reversed(CHAT.items()))
    with system.client(key) as client:
        quote = client.post("/v1/quotes", json=BODY).json()["id"]
        answer = client.post("/v1/requests", json={"model": "fake-stream", "input": turned, "quote": quote})
    assert answer.status_code == 202, answer.text


def test_a_quote_of_somebody_else_does_not_exist(system: System) -> None:
    _, mine = system.account("mine", "1")
    _, other = system.account("other", "1")
    with system.client(mine) as client:
        quote = client.post("/v1/quotes", json=BODY).json()["id"]
    with system.client(other) as client:
        answer = client.post("/v1/requests", json=BODY | {"quote": quote})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "quote_not_found")


def test_a_changed_quote_was_never_made(system: System) -> None:
    _, key = system.account("forger", "1")
    with system.client(key) as client:
        quote = client.post("/v1/quotes", json=BODY).json()["id"]
        for at in range(4, len(quote) - 1, 7):
            forged = quote[:at] + ("A" if quote[at] != "A" else "B") + quote[at + 1 :]
            answer = client.post("/v1/requests", json=BODY | {"quote": forged})
            assert answer.status_code == 404, (at, answer.text)


def raise_price(system: System, file: Path) -> None:
    """Sell fake-chat for seven times as much from now on."""
    text = system.run("catalog", "export").stdout
    head, _, block = text.partition("  fake-chat:")
    dearer = re.sub(r"usd: 0\.001\b", "usd: 0.007", block, count=1)
    assert dearer != block
    file.write_text(f"{head}  fake-chat:{dearer}")
    applied = system.run("catalog", "apply", str(file))
    assert applied.returncode == 0, applied.stderr
