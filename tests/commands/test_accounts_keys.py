"""`faregate accounts` and `faregate keys`, against a live admin API."""

import json
from typing import Any
from uuid import uuid4

from click.testing import Result

from tests.commands.conftest import ADMIN_KEY, Command

USD = 10**9


def ok(result: Result) -> str:
    """Give what a command printed that must have worked."""
    assert result.exit_code == 0, result.output
    return result.stdout


def read(result: Result) -> Any:
    """Read the JSON of a command that must have worked."""
    return json.loads(ok(result))


def made(command: Command, *options: str) -> dict[str, Any]:
    """Make an account by command."""
    found: dict[str, Any] = read(command("accounts", "create", uuid4().hex, *options, "--json"))
    return found


def test_an_account_is_created_shown_and_topped_up_to_the_billionth(command: Command) -> None:
    account = made(command, "--balance", "12.5")
    assert (account["available_nanos"], account["held_nanos"], account["spent_nanos"]) == (12_500_000_000, 0, 0)
    topped_up = read(command("accounts", "top-up", str(account["id"]), "0.000000001", "--json"))
    assert topped_up["available_nanos"] == 12_500_000_001
    assert read(command("accounts", "show", str(account["id"]), "--json")) == topped_up
    assert "$12.500000001" in ok(command("accounts", "show", str(account["id"])))


def test_a_postpaid_account_is_adjusted_below_zero_and_its_limit_raised(command: Command) -> None:
    account = made(command, "--postpaid", "--credit-limit", "5")
    shown = read(command("accounts", "adjust", str(account["id"]), "-2.5", "--reason", "moved", "--json"))
    assert shown["available_nanos"] == -2_500_000_000
    kept = read(command("accounts", "retention", str(account["id"]), "0.5", "--json"))
    assert kept["keep_media_s"] == 43_200
    assert read(command("accounts", "retention", str(account["id"]), "--json"))["keep_media_s"] is None
    raised = read(command("accounts", "credit-limit", str(account["id"]), "7", "--json"))
    assert raised["credit_limit_nanos"] == 7 * USD
    assert "-$2.50" in ok(command("accounts", "show", str(account["id"])))


def test_an_account_is_suspended_and_resumed(command: Command) -> None:
    account = made(command)
    assert "suspended" in ok(command("accounts", "suspend", str(account["id"])))
    assert "suspended" not in ok(command("accounts", "resume", str(account["id"])))


def test_lists_accounts_as_a_table_and_as_json(command: Command) -> None:
    account = made(command, "--balance", "1000")
    table = ok(command("accounts", "list")).splitlines()
    assert table[0].split()[:3] == ["id", "name", "state"]
    assert any(account["name"] in line and "$1,000.00" in line for line in table)
    assert account in read(command("accounts", "list", "--json"))


def test_a_key_is_printed_once_alone_on_its_line(command: Command) -> None:
    account = made(command)
    result = command("keys", "create", "--account", str(account["id"]), "--name", "prod", "--budget", "3")
    secret = ok(result).strip()
    assert secret.startswith("fg_live_")
    assert "not shown again" in result.stderr
    table = ok(command("keys", "list", "--account", str(account["id"])))
    assert secret not in table
    assert secret[:12] in table
    assert "$3.00" in table


def test_a_key_is_revoked(command: Command) -> None:
    account = made(command)
    issued = read(command("keys", "create", "--account", str(account["id"]), "--expires", "2099-01-01", "--json"))
    assert issued["key"].startswith("fg_live_")
    assert issued["expires_at"].startswith("2099-01-01T00:00:00")
    assert "is revoked" in ok(command("keys", "revoke", str(issued["id"])))
    (listed,) = read(command("keys", "list", "--account", str(account["id"]), "--json"))
    assert listed["revoked_at"] is not None
    assert "key" not in listed


def test_refusals_are_one_line_and_exit_code_1(command: Command) -> None:
    account = made(command)
    for words in (
        ("accounts", "show", "99999"),
        ("accounts", "create", account["name"]),
        ("accounts", "create", "x", "--credit-limit", "1"),
        ("accounts", "adjust", str(account["id"]), "-1", "--reason", "x"),
        ("keys", "create", "--account", "99999"),
        ("keys", "revoke", "99999"),
    ):
        result = command(*words)
        assert result.exit_code == 1, words
        assert result.stderr.startswith("faregate: ")
        assert result.stderr.count("\n") == 1


def test_the_environment_names_a_distant_system(command: Command, base_url: str) -> None:
    account = made(command)
    environ = {"FAREGATE_URL": base_url, "FAREGATE_ADMIN_KEY": ADMIN_KEY}
    assert read(command("accounts", "show", str(account["id"]), "--json", env=environ, where=False)) == account
    wrong = command("accounts", "list", env={**environ, "FAREGATE_ADMIN_KEY": "wrong"}, where=False)
    assert wrong.exit_code == 1
    assert "admin key" in wrong.stderr
