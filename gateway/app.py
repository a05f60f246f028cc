"""The gateway process, wired: the only place where its parts meet."""

import os
import socket

import structlog

log = structlog.get_logger()


def gateway_name() -> str:
    """Name this process; replies for it are addressed by this name."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(3).hex()}"
