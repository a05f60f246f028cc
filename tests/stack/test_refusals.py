"""What keeps `faregate up` from starting is one clear line on the error stream, and exit code 2."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from gateway.cli import main
from gateway.stack.folder import FORMAT, hold_folder
from gateway.stack.ports import free_port

ROOT = Path(__file__).parents[2]
Refusal = Callable[..., str]


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """Run `faregate up` until it refuses; answers its only line."""

    def run(*options: str) -> str:
        command = ["faregate", "up", "--engines", "fake", "--data", str(tmp_path / "data")]
        monkeypatch.setattr(sys, "argv", [*command, "--port", str(free_port()), *options])
        with pytest.raises(SystemExit) as ended:
            main()
        return only_line(ended.value.code, capsys.readouterr().err)

    return run


def refusal_apart(data: Path, *before: str) -> str:
    """The same as a process of its own, begun by another command."""
    up = [sys.executable, "-m", "gateway.cli", "up", "--engines", "fake", "--data", str(data), "--port", "0"]
    done = subprocess.run([*before, *up], cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    return only_line(done.returncode, done.stderr)


def only_line(code: object, error: str) -> str:
    assert code == 2, error
    assert len(error.splitlines()) == 1
    assert error.startswith("faregate: ")
    return error.strip()


def test_a_port_in_use(tmp_path: Path, refusal: Refusal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        line = refusal("--port", str(port))
    assert line == f"faregate: port {port} is in use on 127.0.0.1: stop what listens there, or use --port"


def test_a_data_folder_of_a_newer_release(tmp_path: Path, refusal: Refusal) -> None:
    with hold_folder(tmp_path / "data"):
        pass
    kept = tmp_path / "data" / "stack.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "format": FORMAT + 1}))
    assert "was made by a newer Faregate" in refusal()


def test_a_data_folder_of_another_postgres(tmp_path: Path, refusal: Refusal) -> None:
    with hold_folder(tmp_path / "data") as folder:
        (folder.path / "postgres").mkdir()
        (folder.path / "postgres" / "PG_VERSION").write_text("19\n")
    assert "was made by Postgres 19, and this is 18" in refusal()


def test_a_database_of_a_newer_release(database_url: str, redis_url: str, refusal: Refusal) -> None:
    async def advance() -> None:
        connection = await asyncpg.connect(database_url)
        await connection.execute("UPDATE alembic_version SET version_num = '29991231000000'")
        await connection.close()

    asyncio.run(advance())
    line = refusal("--database-url", database_url, "--redis-url", redis_url)
    assert "newer version (29991231000000)" in line


def test_a_data_folder_in_use(tmp_path: Path, refusal: Refusal) -> None:
    with hold_folder(tmp_path / "data"):
        assert "is in use by another `faregate up`" in refusal()


def test_a_data_folder_that_is_a_file(tmp_path: Path, refusal: Refusal) -> None:
    (tmp_path / "data").write_text("")
    assert "data cannot be used: File exists" in refusal()


def test_a_full_disk(tmp_path: Path) -> None:
    """A file system of 8 MB, in a mount namespace of its own."""
    inside = tmp_path / "small"
    inside.mkdir()
    mount = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    script = f'mount -t tmpfs -o size=8m none "{inside}" && exec "$@"'
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mount, f"{script} true", "-", "true"], check=False).returncode
    ):
        pytest.skip("this machine grants no mount namespaces")
    assert f"the disk of {inside}/data is full: 8 MB free" in refusal_apart(inside / "data", *mount, script, "-")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "expected a file that can be read, found"),
        ("pools: {a: {engine: nope}}\nmodels: {}\n", "catalog.yaml:1"),
        ("pools: [", "catalog.yaml:"),
        ("models: {x: {tasks: [cook], price: [{usd: -1, per: spoon}]}}\n", "and "),
    ],
    ids=["missing", "wrong", "not YAML", "several problems"],
)
def test_an_unreadable_catalog(tmp_path: Path, content: str | None, expected: str, refusal: Refusal) -> None:
    catalog = tmp_path / "catalog.yaml"
    if content is not None:
        catalog.write_text(content)
    assert expected in refusal("--catalog", str(catalog))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--database-url", "postgresql://nobody@127.0.0.1:1/none"), "database"),
        (("--redis-url", "redis://127.0.0.1:1/0"), "Redis does not answer as --redis-url says"),
        (("--redis-url", "http://127.0.0.1"), "a Redis URL begins with redis://"),
        (("--engines", "steam"), "there is no engine 'steam'"),
        (("--engines", ","), "no engine is left to start"),
        (("--port", "70000"), "70000 is not in the range"),
        (("--nope",), "No such option '--nope'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_command_line_says_wrong(
    database_url: str, redis_url: str, options: tuple[str, ...], expected: str, refusal: Refusal
) -> None:
    """The servers that are not wrong are real ones, so that nothing else has to start."""
    right = ("--database-url", database_url, "--redis-url", redis_url)
    assert expected in refusal(*right, *options)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder that this user may not write")
def test_a_data_folder_that_may_not_be_written(tmp_path: Path) -> None:
    closed = Path("/var/tmp") / f"{tmp_path.parent.name}-closed"
    closed.mkdir(mode=0o755, exist_ok=True)
    try:
        line = refusal_apart(closed / "data", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    finally:
        shutil.rmtree(closed)
    assert "data cannot be used: Permission denied" in line
