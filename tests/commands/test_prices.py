"""`faregate prices` and the admin API behind it: what they set, schedule, call off, print and refuse."""

import asyncio
import json
import re

import pytest

from gateway.catalog.model import Parameter
from gateway.catalog.store import apply
from gateway.db.session import slow_engine
from tests.catalog.conftest import a_catalog, a_model
from tests.commands.conftest import Command
from tests.ledger.scene import Scene

QUALITY = Parameter(type="string", choices=("low", "hd"), default="low", priced=True)


@pytest.fixture(scope="module", autouse=True)
def account_id(module_database_url: str) -> int:
    """Sell a model, and make an account that may buy it."""

    async def make() -> int:
        engine = slow_engine(module_database_url)
        await apply(
            engine, a_catalog(a_model(parameters={"quality": QUALITY}, tasks=("text-to-image",))), source="file"
        )
        await engine.dispose()
        scene = await Scene.open(module_database_url)
        await scene.close()
        return scene.account.id

    return asyncio.run(make())


def test_a_price_with_conditions_is_set_and_shown(command: Command) -> None:
    rows = ("{usd: 0.08, per: image, when: {quality: hd}}", "{usd: 0.040, per: image}")
    done = command("prices", "set", "m", *rows, "--minimum", "0.05", "--reason", "dearer")
    assert done.exit_code == 0, done.output
    assert done.output.endswith("from now: $0.08 per image with quality hd; $0.04 per image; at least $0.05\n")
    shown = json.loads(command("prices", "show", "m", "--json").stdout)
    assert [(row["usd"], row.get("when")) for row in shown[0]["price"]] == [("0.08", {"quality": "hd"}), ("0.04", None)]
    history = command("prices", "history", "m").stdout
    assert re.search(r"admin key \(api\) +dearer", history)
    assert re.search(r"past .* \(file\)", history)


def test_a_scheduled_price_is_called_off(command: Command) -> None:
    done = command("prices", "schedule", "m", "2029-01-01", "{usd: 1, per: image}")
    assert done.exit_code == 0, done.output
    number = done.output.split()[1]
    assert f"version {number} of m is cancelled" in command("prices", "cancel", number, "--reason", "no").output
    assert "cancelled: no" in command("prices", "history", "m").stdout
    assert command("prices", "cancel", number).exit_code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "m", "{usd: 1, per: image, when: {quality: best}}"), "of its choices (low, hd)"),
        (("set", "m", "{usd: 0, per: image}"), "free on purpose"),
        (("set", "m", "{usd: 1, per: image}", "--base", "0"), "came first"),
        (("set", "m", "{usd: 1, per: token}"), "one of the units"),
        (("set", "m", "1 dollar"), "is no row such as"),
        (("set", "nobody", "{usd: 1}"), "no such model"),
        (("schedule", "m", "tomorrow", "{usd: 1}"), "not an ISO 8601 instant"),
        (("schedule", "m", "2020-01-01", "{usd: 1}"), "in the future"),
        (("history", "m", "--list", "nobodys"), "no such price list"),
    ],
)
def test_what_is_refused_says_why(command: Command, words: tuple[str, ...], said: str) -> None:
    refused = command("prices", *words)
    assert refused.exit_code != 0
    assert said in refused.stderr


def test_an_account_gets_a_discount(command: Command, account_id: int) -> None:
    done = command("prices", "account", str(account_id), "--discount", "12.5")
    assert done.output == f"account {account_id} (Ada) pays list prices, less 12.5%\n"
    assert command("prices", "lists").stdout.split() == ["list", "models", "accounts"]
