"""`faregate catalog`, as an operator uses it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import faregate

OWN = Path(__file__).parents[2] / "catalog.yaml"

SMALL = """\
pools: {fake: {engine: fake}}
models:
  m:
    tasks: [chat]
    description: A model.
    context_tokens: 100
    price: [{usd: 0.001, per: request}]
    routes: [{pool: fake}]
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(faregate, ["catalog", *map(str, arguments)])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "catalog.yaml"
    file.write_text(SMALL)
    return file


def test_check_needs_no_system() -> None:
    result = run("check", OWN)
    told = json.loads(run("check", OWN, "--json").output)
    assert (result.exit_code, result.output) == (
        0,
        f"{OWN} is right: {told['models']} models, {told['for_sale']} of them for sale, {told['pools']} pools\n"
        f"models by upstream: {', '.join(f'{name} {count}' for name, count in told['upstreams'].items())}\n",
    )
    assert 0 < told["for_sale"] <= told["models"]
    assert all(told["upstreams"].values())
    assert told["models"] >= 150
    assert (told["ok"], told["problems"]) == (True, [])


def test_check_counts_what_is_for_sale_and_who_serves_it(small: Path) -> None:
    small.write_text("""\
pools: {fake: {engine: fake}, cloud: {engine: upstream}}
upstreams:
  one: {protocol: openai, url: https://one.example, pool: cloud}
  two: {protocol: openai, url: https://two.example, pool: cloud}
models:
  sold:
    tasks: [chat]
    description: A model.
    context_tokens: 100
    price: [{usd: 0.001, per: request}]
    routes: [{pool: fake}, {upstream: one, model: a}, {upstream: one, model: b}, {upstream: two, model: a}]
  kept:
    tasks: [text-to-image]
    description: A model.
    routes: [{upstream: two, model: c}]
""")
    assert run("check", small).output == (
        f"{small} is right: 2 models, 1 of them for sale, 2 pools\nmodels by upstream: one 1, two 2\n"
    )


def test_check_names_every_error_and_exits_1(small: Path) -> None:
    small.write_text(SMALL.replace("0.001", "-1").replace("100", "many"))
    result = run("check", small)
    assert result.exit_code == 1
    assert [line.split(": ")[0] for line in result.stderr.splitlines()] == [f"{small}:6", f"{small}:7"]
    problems = json.loads(run("check", small, "--json").stdout)["problems"]
    assert problems[0] == {
        "line": 6,
        "field": "models.m.context_tokens",
        "expected": "a whole number from 0 to 100000000",
        "found": '"many"',
    }


def test_diff_apply_and_export_go_round(database_url: str, small: Path, tmp_path: Path) -> None:
    database = ("--database-url", database_url)
    first = run("diff", small, *database)
    assert (first.exit_code, first.output) == (1, "+ pool fake\n+ model m\n    price per request: $0.001\n")
    assert run("apply", small, *database).exit_code == 0
    assert run("diff", small, *database).output == "no changes\n"
    exported = tmp_path / "exported.yaml"
    exported.write_text(run("export", *database).output)
    assert run("check", exported).exit_code == 0
    assert run("diff", exported, *database).exit_code == 0
    exported.write_text(exported.read_text().replace("0.001", "0.002"))
    change = json.loads(run("diff", exported, *database, "--json").output)
    assert change["changes"] == [
        {
            "kind": "model",
            "name": "m",
            "action": "changed",
            "fields": [],
            "price": [{"field": "price per request", "old": "$0.001", "new": "$0.002"}],
            "last": None,
        }
    ]
    assert json.loads(run("apply", exported, *database, "--json").output)["revision"] == 2


def test_a_data_folder_names_the_database(database_url: str, small: Path, tmp_path: Path) -> None:
    connection = {"base_url": "http://127.0.0.1:1", "admin_key": "k" * 20, "database_url": database_url}
    (tmp_path / "connection.json").write_text(json.dumps(connection))
    assert run("diff", small, "--data", tmp_path).exit_code == 1
    assert run("apply", small, "--data", tmp_path).exit_code == 0
    assert json.loads(run("export", "--data", tmp_path, "--json").output)["models"]["m"]["tasks"] == ["chat"]


def test_a_wrong_file_changes_nothing_and_exits_2(database_url: str, small: Path) -> None:
    small.write_text(SMALL.replace("engine: fake", "engine: gpu"))
    for command in ("diff", "apply"):
        result = run(command, small, "--database-url", database_url)
        assert result.exit_code == 2
        assert "nothing was changed" in result.stderr
        assert f"{small}:1: pools.fake.engine: expected one of vllm, speech, fake" in result.stderr
    assert run("export", "--database-url", database_url).output.endswith("pools: {}\nmodels: {}\n")


@pytest.mark.parametrize("arguments", [("--database-url", "postgresql://x@127.0.0.1:1/y"), ("--data", "/nowhere")])
def test_a_system_that_is_not_there_is_one_line_and_exit_2(small: Path, arguments: tuple[str, str]) -> None:
    result = run("apply", small, *arguments)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
