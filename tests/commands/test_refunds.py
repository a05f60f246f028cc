"""`faregate refunds` and the admin API behind it: what they give back, print and refuse."""

import asyncio
import json

import pytest

from tests.commands.conftest import Command
from tests.ledger.scene import Scene

CHARGE = "$0.001"


@pytest.fixture(scope="module")
def request_id(module_database_url: str) -> str:
    """Make a request that was charged a tenth of a cent."""

    async def call() -> str:
        scene = await Scene.open(module_database_url)
        made = await scene.call("painter")
        await scene.close()
        return made

    return asyncio.run(call())


def test_a_charge_is_given_back_in_parts_and_listed(command: Command, request_id: str) -> None:
    given = command("refunds", "give", request_id, "0.0004", "--reason", "blurred")
    assert given.exit_code == 0, given.output
    assert given.output.startswith(f"$0.0004 of {request_id} is given back to account ")
    number = "6f2f0f6e-0000-4000-8000-000000000001"
    for _ in range(2):
        rest = command("refunds", "give", request_id, "--reason", "all", "--transaction-id", number, "--json")
        assert json.loads(rest.stdout)["amount_nanos"] == 600_000
    shown = command("refunds", "show", request_id)
    assert shown.output.startswith(f"charged {CHARGE}, given back {CHARGE}, left $0.00\n")
    listed = json.loads(command("refunds", "list", "--json").stdout)
    assert [(one["amount_nanos"], one["reason"], one["actor"]) for one in listed] == [
        (600_000, "all", "admin key"),
        (400_000, "blurred", "admin key"),
    ]
    assert command("refunds", "list", "--account", "999999").output.count("\n") == 1


def test_more_than_was_charged_is_refused_in_one_line(command: Command, request_id: str) -> None:
    refused = command("refunds", "give", request_id, "5", "--reason", "greedy")
    assert refused.exit_code == 1
    assert "can still be given back" in refused.stderr
    missing = command("refunds", "give", "req_nothing", "--reason", "none")
    assert (missing.exit_code, missing.stderr) == (1, "faregate: There is no such request.\n")
