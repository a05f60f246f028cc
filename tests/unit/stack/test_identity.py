"""Postgres can be run from anywhere, by root too, without changing who owns anything but its data."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.stack.identity import Programs, find_identity, launch_command, owner, reachable

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another identity")


def package(folder: Path, mode: int) -> Path:
    """Make a package with one program, in a folder of that mode."""
    programs = folder / "wheel" / "bin"
    programs.mkdir(parents=True)
    shutil.copy("/bin/true", programs / "server")
    folder.chmod(mode)
    return folder / "wheel"


@pytest.fixture
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that everyone can reach: pytest's own are closed."""
    folder = Path("/var/tmp") / tmp_path_factory.mktemp("x").parent.name / "identity"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.parent.chmod(0o755)
    return folder


@pytest.mark.skipif(os.geteuid() == 0, reason="for an ordinary user")
def test_an_ordinary_user_runs_postgres_as_himself(tmp_path: Path) -> None:
    wheel = package(tmp_path / "p", 0o700)
    assert find_identity(wheel, wheel / "bin", "server") == Programs(folder=wheel / "bin", identity="same")


@AS_ROOT
def test_root_runs_programs_in_an_open_folder_as_nobody(open_folder: Path) -> None:
    wheel = package(open_folder / "p", 0o755)
    assert find_identity(wheel, wheel / "bin", "server").identity == "user:65534"


@AS_ROOT
def test_root_runs_programs_in_a_closed_folder_all_the_same(open_folder: Path) -> None:
    """In a user namespace, or from a copy where the kernel grants none."""
    wheel = package(open_folder / "p", 0o700)
    found = find_identity(wheel, wheel / "bin", "server")
    assert found.identity == "namespace" or found.copied
    run = launch_command([str(found.folder / "server")], identity=found.identity)
    assert subprocess.run(run, check=False).returncode == 0


@AS_ROOT
def test_data_belong_to_whoever_runs_the_server() -> None:
    assert [owner(identity) for identity in ("same", "namespace", "user:65534")] == [0, 0, 65534]


def test_a_folder_below_a_closed_one_is_not_reachable(open_folder: Path) -> None:
    inside = open_folder / "closed" / "data"
    inside.mkdir(parents=True)
    assert reachable(inside)
    inside.parent.chmod(0o700)
    assert not reachable(inside)
