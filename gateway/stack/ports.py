"""Ports of this machine."""

import asyncio
import errno
import random
import socket
import time

from gateway.stack.errors import StackError

POLL_S = 0.05
BACKLOG = 4096
"""How many connections may wait while a gateway is started again; the kernel cuts it to its own limit."""


FREE_PORTS = range(15_000, 32_000)
"""Below the ports that Linux gives to outgoing connections (32768 and up). A client that keeps knocking at a server of
such a number while it is started again can be given that very number, connect to itself, and keep the server out."""
TRIES = 100


def free_port(wanted: int = 0, host: str = "127.0.0.1") -> int:
    """Answer `wanted` when nobody listens on it, and otherwise a port that is free now."""
    for port in (*([wanted] if wanted else []), *random.sample(FREE_PORTS, TRIES)):
        try:
            with _bind(host, port) as probe:
                return int(probe.getsockname()[1])
        except OSError:
            continue
    raise StackError(f"no port is free on {host}")


async def listen(host: str, port: int, timeout_s: float) -> socket.socket:
    """Listen on a port as soon as it is free. Raises StackError when it is not within `timeout_s`."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            listener = _bind(host, port)
            listener.listen(BACKLOG)
            return listener
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise StackError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
            if time.monotonic() > end:
                raise StackError(f"port {port} is in use on {host}: stop what listens there, or use --port") from None
        await asyncio.sleep(POLL_S)


def _bind(host: str, port: int) -> socket.socket:
    """Open a socket on a port. Raises OSError."""
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
    except OSError:
        opened.close()
        raise
    return opened
