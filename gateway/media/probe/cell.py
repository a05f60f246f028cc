"""The inside of a probe's process: its limits, and its conversation with the gateway.

A question is one message with an open file beside it; the answer is one message. The process can write no file and,
where the system allows it, reach no network; memory and processor time are limited, and both limits end it and nothing
else.
"""

import ctypes
import gc
import json
import os
import resource
import signal
import socket
from collections.abc import Callable
from typing import Any, BinaryIO

MEMORY_BYTES = 1536 * 1024 * 1024
"""Of addresses, libraries included. What needs more is refused."""
CPU_S = 10
"""For each file."""
MOST_FILES = 100
"""After that many a fresh process takes over: what a file may have done to this one ends with it."""
MESSAGE_BYTES = 65536
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000

Examine = Callable[[BinaryIO, dict[str, Any]], dict[str, Any]]


def serve(channel: socket.socket, examine: Examine) -> None:
    """Answer questions until the gateway closes the socket, or this process has seen enough files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _confine()
    for _ in range(MOST_FILES):
        message, files, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 1)
        if not message or not files:
            return
        _allow_cpu()
        with os.fdopen(files[0], "rb") as file:
            file.seek(0)
            answer = _answer(examine, file, json.loads(message))
        channel.sendall(json.dumps(answer).encode())
        gc.collect()


def _answer(examine: Examine, file: BinaryIO, question: dict[str, Any]) -> dict[str, Any]:
    try:
        return examine(file, question)
    except MemoryError:
        return {"refused": "over_limit", "said": "takes too much memory to open"}


def _confine() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Best effort: without user namespaces the network stays within reach, and nothing here asks for it.
    ctypes.CDLL(None).unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def _allow_cpu() -> None:
    """Give the next file its seconds; where they are over, the kernel ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + CPU_S, resource.RLIM_INFINITY))
