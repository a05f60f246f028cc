"""Servers of the benchmark's own, each a child process on a free port of 127.0.0.1."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
STOP_S = 10


def free_port() -> int:
    """Find a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", within_s: float) -> None:
    """Wait until somebody listens on `port`. Raises RuntimeError when the process has ended, or TimeoutError."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port} after {within_s} s")


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Ask a process to end, and end it where it does not."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def asgi_server(application: str, *options: str) -> Iterator[tuple[int, int]]:
    """Serve an application on uvicorn with uvloop and httptools. Yields port and process id."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", application, "--port", str(port), *options]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    command += ["--no-proxy-headers", "--no-server-header", "--lifespan", "off"]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for_port(port, process, within_s=30)
        yield port, process.pid
    finally:
        stop(process)
