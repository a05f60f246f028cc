"""Ties the engine's processes to the worker's life.

vLLM's engine core outlives a worker that is killed with -9: it waits for requests for ever, with all
its memory. vLLM offers no hook in that process, but it sends its configuration there by pickle, before
anything is loaded; so a part of the configuration that acts when it is unpickled is the hook.
"""

import os
import signal
import threading
import time
from typing import Any

LOOK_S = 0.5


class Tether:
    """Wherever this arrives by pickle, the process dies within LOOK_S of the one that sent it."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        """Send the id of this process along; a child that sends the tether on ties its own children."""
        return _arrive, (os.getpid(),)

    def compute_hash(self) -> str:
        """Answer what vLLM asks of such a part of its configuration: it does not change the model."""
        return "tether"


def _arrive(sender: int) -> Tether:
    if sender != os.getpid():
        threading.Thread(target=_follow, args=(sender,), name="tether", daemon=True).start()
    return Tether()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), signal.SIGKILL)
