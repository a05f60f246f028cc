"""Ports on the loopback address."""

import socket


def free_port(wanted: int = 0, host: str = "127.0.0.1") -> int:
    """Answer `wanted` when nobody listens on it, and otherwise a port that is free now."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"no free port on {host}")
