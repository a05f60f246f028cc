"""What a stack that was killed leaves behind: servers that are about to end, and Postgres's lock file.

The kernel tells the children of a killed stack to end; the next start may come before they have.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gateway.stack.errors import StackError

GRACE_S = 10.0
POLL_S = 0.05


def clear_leftovers(data_dir: Path, program: str) -> None:
    """Wait until nobody runs `program` in a data directory that is ours alone, and remove its lock file.

    Whoever is still there after half the time is killed. The lock file must go: Postgres takes any living
    process that has the number in it for another Postgres, and after a restart of a machine there often is one.
    """
    start = time.monotonic()
    while pids := list(_running_in(data_dir, program)):
        waited = time.monotonic() - start
        if waited > GRACE_S:
            raise StackError(f"{program} (process {pids[0]}) still runs in {data_dir} and does not end: stop it")
        if waited > GRACE_S / 2:
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)
    (data_dir / "postmaster.pid").unlink(missing_ok=True)


def _running_in(data_dir: Path, program: str) -> Iterator[int]:
    """Name the processes of a program whose working directory is the data directory, as servers make it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "cwd").samefile(data_dir) and program.startswith((entry / "comm").read_text().strip()):
                    yield int(entry.name)
