"""How a command finds its system, and what it says when it cannot."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.commands.accounts import accounts


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    for name in ("FAREGATE_URL", "FAREGATE_ADMIN_KEY", "FAREGATE_DATA"):
        monkeypatch.delenv(name, raising=False)
    return CliRunner()


def test_without_a_running_system_it_says_what_to_do(runner: CliRunner, tmp_path: Path) -> None:
    result = runner.invoke(accounts, ["list", "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "connection.json" in result.stderr
    assert "faregate up" in result.stderr


def test_a_connection_file_that_is_not_one_is_told(runner: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "connection.json").write_text("{")
    result = runner.invoke(accounts, ["list", "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


def test_a_system_that_does_not_answer_is_one_line_and_exit_code_2(runner: CliRunner) -> None:
    environ = {"FAREGATE_URL": "http://127.0.0.1:1", "FAREGATE_ADMIN_KEY": "secret-admin-key-secret"}
    result = runner.invoke(accounts, ["list"], env=environ)
    assert result.exit_code == 2
    assert result.stderr.startswith("faregate: no answer from http://127.0.0.1:1")
    assert result.stderr.count("\n") == 1
    assert "secret-admin-key" not in result.output


def test_a_url_without_its_key_is_told(runner: CliRunner) -> None:
    result = runner.invoke(accounts, ["list"], env={"FAREGATE_URL": "http://127.0.0.1:1"})
    assert result.exit_code == 2
    assert "FAREGATE_ADMIN_KEY" in result.stderr


@pytest.mark.parametrize("amount", ["-1", "1e", "NaN", "0.0000000001", "99999999999999"])
def test_amounts_that_are_no_dollars_are_refused_before_any_call(runner: CliRunner, amount: str) -> None:
    result = runner.invoke(accounts, ["top-up", "1", "--", amount])
    assert result.exit_code == 2
    assert "USD" in result.stderr
