"""`faregate catalog import`, as an operator uses it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import faregate

OWN = Path(__file__).parents[2] / "catalog.yaml"
MAPS = Path(__file__).parents[1] / "unit" / "catalog" / "price_maps"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(faregate, ["catalog", *map(str, arguments)])


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.json"
    file.write_bytes((MAPS / "litellm.json").read_bytes())
    return file


def test_what_is_imported_passes_the_check(prices: Path, tmp_path: Path) -> None:
    result = run("import", "litellm", prices, "--upstream", "gmi-llm", "--catalog", OWN, "--only", "*-chat")
    assert result.exit_code == 0
    assert "there/big-chat: not in the price: input_cost_per_token_above_128k_tokens 0.0000003\n" in result.stderr
    assert "lost-chat: left out: its context is not known: say one with --context\n" in result.stderr
    assert "half-chat: no price, so it is not for sale\n" in result.stderr
    assert result.stderr.endswith("3 models, 1 left out\n")
    file = tmp_path / "imported.yaml"
    file.write_text(result.stdout)
    told = json.loads(run("check", file, "--json").output)
    assert (told["ok"], told["models"]) == (True, 3)
    assert 'url: "https://api.gmi-serving.com/v1"' in result.stdout  # as the catalog knows it


def test_openrouter_is_known_by_its_address(tmp_path: Path) -> None:
    file = tmp_path / "models.json"
    file.write_bytes((MAPS / "openrouter.json").read_bytes())
    result = run("import", "openrouter", file, "--upstream", "openrouter", "--catalog", tmp_path / "none.yaml")
    assert result.exit_code == 0
    assert 'url: "https://openrouter.ai/api/v1"' in result.stdout
    assert "maker/router: no price, so it is not for sale\n" in result.stderr
    assert "maker/plain:free: every price is zero there, so it is free\n" in result.stderr


def test_tasks_that_a_protocol_does_not_do_are_left_out(prices: Path) -> None:
    options = ("--upstream", "mine", "--url", "https://fal.example.com", "--protocol", "fal")
    result = run("import", "litellm", prices, *options)
    assert result.exit_code == 0
    assert "there/big-chat: left out: the protocol fal does no chat\n" in result.stderr
    assert "\n  painter:\n" in result.stdout


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--upstream", "nobody"), "knows no upstream nobody, so its address is needed"),
        (("--upstream", "mine", "--url", "http://example.com"), "--url: expected an https address"),
        (("--upstream", "No Name", "--url", "https://example.com"), "--upstream: expected a name"),
    ],
)
def test_what_cannot_be_an_upstream_is_refused(prices: Path, options: tuple[str, ...], error: str) -> None:
    result = run("import", "litellm", prices, *options, "--catalog", OWN)
    assert result.exit_code == 2
    assert error in result.stderr


def test_a_file_that_is_no_price_map_is_named(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text("[]")
    there = ("--upstream", "mine", "--url", "https://example.com")
    wrong = run("import", "litellm", file, *there)
    assert wrong.exit_code == 2
    assert f"{file} is not a price map of LiteLLM" in wrong.stderr
    assert run("import", "openrouter", tmp_path / "nothing.json", *there).exit_code == 2
