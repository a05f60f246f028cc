"""What a killed stack leaves behind does not keep the next one from starting."""

import os
import secrets
import signal
import subprocess
from pathlib import Path

from gateway.stack import postgres
from gateway.stack.children import await_ready, spawn, stop
from gateway.stack.leftovers import clear_leftovers
from gateway.stack.ports import free_port


def test_a_lock_file_with_the_number_of_a_living_stranger_is_removed(tmp_path: Path) -> None:
    """After a restart of a machine, the number of the old Postgres is often somebody else's."""
    data = tmp_path / "postgres"
    data.mkdir()
    (data / "postmaster.pid").write_text(f"{os.getppid()}\n{data}\n")
    clear_leftovers(data, "postgres")
    assert not (data / "postmaster.pid").exists()


def test_a_process_that_only_stands_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "600"], cwd=tmp_path) as stranger:
        clear_leftovers(tmp_path, "postgres")
        assert stranger.poll() is None
        stranger.kill()


def test_a_postgres_that_was_killed_starts_again_with_all_that_was_committed(tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.mkdir()
    data, log, password = place / "postgres", place / "log", secrets.token_hex(8)
    server = postgres.prepare(data, log=log, port=free_port(), password=password, durable=False)
    process = spawn(server.child())
    await_ready(process, server.child(), server.ready, 120.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    clear_leftovers(data, "postgres")
    server = postgres.prepare(data, log=log, port=free_port(), password=password, durable=False)
    process = spawn(server.child())
    try:
        await_ready(process, server.child(), server.ready, 120.0)
    finally:
        stop(process, server.child())
    assert "database system was not properly shut down" in log.read_text()
