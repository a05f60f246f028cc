"""A child of the stack ends with whoever spawned it, whatever identity it takes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from gateway.stack.identity import NOBODY, launch_command

ROOT = Path(__file__).parents[3]
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can take on another identity")
PARENT = """
import subprocess, sys
from gateway.stack.identity import launch_command
child = subprocess.Popen(launch_command(["/bin/sleep", "600"], identity=sys.argv[1]), start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def wait_for(condition, timeout_s: float = 60.0) -> bool:  # type: ignore[no-untyped-def]
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    "identity", ["same", pytest.param(f"user:{NOBODY}", marks=AS_ROOT), pytest.param("namespace", marks=AS_ROOT)]
)
def test_a_child_ends_when_its_parent_is_killed(identity: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, identity], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert wait_for(lambda: psutil.Process(pid).name() == "sleep")
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert wait_for(lambda: not is_running(pid))


@AS_ROOT
@pytest.mark.parametrize(("identity", "seen"), [(f"user:{NOBODY}", str(NOBODY)), ("namespace", "1000")])
def test_a_program_that_refuses_root_finds_itself_another_user(identity: str, seen: str) -> None:
    told = subprocess.run(launch_command(["/usr/bin/id", "-u"], identity=identity), capture_output=True, check=True)
    assert told.stdout.decode().strip() == seen


def test_a_child_does_not_begin_without_its_parent() -> None:
    command = launch_command(["/bin/echo", "began"])
    command[4] = "1"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
