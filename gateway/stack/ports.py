"""Ports of this machine."""

import asyncio
import errno
import socket
import time

from gateway.stack.errors import StackError

POLL_S = 0.05


def free_port(wanted: int = 0, host: str = "127.0.0.1") -> int:
    """Answer `wanted` when nobody listens on it, and otherwise a port that is free now."""
    for port in (wanted, 0):
        try:
            return _bind(host, port)
        except OSError:
            continue
    raise StackError(f"no port is free on {host}")


async def claim_port(host: str, port: int, timeout_s: float) -> int:
    """Answer `port` once it is free. Raises StackError when it is not within `timeout_s`."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            return _bind(host, port)
        except (OSError, OverflowError) as error:
            if not isinstance(error, OSError) or error.errno != errno.EADDRINUSE:
                raise StackError(f"cannot listen on {host}:{port}: {error}") from None
            if time.monotonic() > end:
                raise StackError(f"port {port} is in use on {host}: stop what listens there, or use --port") from None
        await asyncio.sleep(POLL_S)


def _bind(host: str, port: int) -> int:
    """Answer the port that a server could listen on now. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
