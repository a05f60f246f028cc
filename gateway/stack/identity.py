"""Who Postgres runs as. It refuses to run as root, so for root another identity is found that can run its programs.

In order: the user `nobody`, where the wheel's folder is open to him; a user namespace, where the kernel grants one;
`nobody` again, with a copy of the programs in a folder that is open. The data stay where they are in every case.
"""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import msgspec

from gateway.stack.errors import StackError

NOBODY = 65534
LAUNCH = Path(__file__).with_name("launch.py")
COPIES = Path("/var/tmp/faregate")


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """Programs, and the identity that can run them: `same`, `user:NUMBER` or `namespace`, as launch.py takes it."""

    folder: Path
    identity: str
    copied: bool = False


def launch_command(command: list[str], *, identity: str = "same", death_signal: int = 9) -> list[str]:
    """Wrap a command so that it changes its identity and dies with the process that spawns it."""
    return [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), str(int(death_signal)), identity, *command]


def find_identity(package: Path, folder: Path, trial: str) -> Programs:
    """Answer how to run the programs in `folder`, a part of `package`, without being root; `trial` is one of them."""
    if os.geteuid() != 0:
        return Programs(folder=folder, identity="same")
    nobody = f"user:{NOBODY}"
    for identity in (nobody, "namespace"):
        if _runs(folder / trial, identity):
            return Programs(folder=folder, identity=identity)
    copy = _copy(package) / folder.relative_to(package.parent)
    if _runs(copy / trial, nobody):
        return Programs(folder=copy, identity=nobody, copied=True)
    raise StackError(f"neither {folder} nor its copy {copy} can be run by an ordinary user: start Faregate as one")


def owner(identity: str) -> int:
    """Answer the user, as numbered outside of any namespace, who owns the files of that identity."""
    kind, _, number = identity.partition(":")
    return int(number) if kind == "user" else os.geteuid()


def give(path: Path, user: int) -> None:
    """Give a file, or a folder and everything in it, to a user, where it is not his already."""
    if os.geteuid() != 0 or path.stat().st_uid == user:
        return
    for each in [path, *path.rglob("*")]:
        os.chown(each, user, user, follow_symlinks=False)


def reachable(path: Path) -> bool:
    """Whether everyone may pass through all folders above `path`."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)


def _runs(program: Path, identity: str) -> bool:
    trial = launch_command([str(program), "--version"], identity=identity)
    return subprocess.run(trial, capture_output=True, check=False, cwd="/").returncode == 0


def _copy(package: Path) -> Path:
    """Copy a package with its libraries to a folder that only root may change, and answer that folder."""
    COPIES.mkdir(mode=0o755, exist_ok=True)
    status = COPIES.lstat()
    if status.st_uid != 0 or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or not stat.S_ISDIR(status.st_mode):
        raise StackError(f"{COPIES} belongs to someone else: remove it")
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.is_dir():
            shutil.copytree(part, COPIES / part.name, dirs_exist_ok=True)
    return COPIES
