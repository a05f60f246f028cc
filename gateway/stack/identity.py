"""Who Postgres runs as. It refuses to run as root, so for root another identity is found that reaches its files."""

import os
import subprocess
import sys
from pathlib import Path

NOBODY = 65534
LAUNCH = Path(__file__).with_name("launch.py")


def launch_command(command: list[str], *, identity: str = "same", death_signal: int = 9) -> list[str]:
    """Wrap a command so that it changes its identity and dies with the process that spawns it."""
    return [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), str(int(death_signal)), identity, *command]


def choose_identity(binary: Path, data_dir: Path) -> str:
    """Answer `same`, `user:NUMBER` or `namespace`, whichever can run `binary` on `data_dir` without being root."""
    if os.geteuid() != 0:
        return "same"
    unprivileged = f"user:{NOBODY}"
    if _reachable(data_dir) and _runs(binary, unprivileged):
        return unprivileged
    if _runs(binary, "namespace"):
        return "namespace"
    return unprivileged


def owner(identity: str) -> int:
    """Answer the user, as numbered outside of any namespace, who owns the files of that identity."""
    kind, _, number = identity.partition(":")
    return int(number) if kind == "user" else os.geteuid()


def give(folder: Path, user: int) -> None:
    """Give a folder and everything in it to a user, where it is not his already."""
    if os.geteuid() != 0 or folder.stat().st_uid == user:
        return
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, user, user, follow_symlinks=False)


def _reachable(folder: Path) -> bool:
    """Whether everyone may pass through all folders above this one."""
    return all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents)


def _runs(binary: Path, identity: str) -> bool:
    trial = launch_command([str(binary), "--version"], identity=identity)
    return subprocess.run(trial, capture_output=True, check=False, cwd="/").returncode == 0
