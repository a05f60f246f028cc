"""Loads a model in a thread that nobody has to wait for: a worker told to stop meanwhile can go at once."""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import Future

from workers.engines.vllm.shapes import Served

LOAD_ERRORS = (ImportError, OSError, RuntimeError, ValueError, TypeError, LookupError, AssertionError)
"""What vLLM raises for a model that it cannot load."""


async def load_apart(start: Callable[[], Served]) -> Served:
    """Run `start`, which blocks for long. When this is cancelled, what has been started is killed.

    Raises one of LOAD_ERRORS.
    """
    done: Future[Served] = Future()
    # Not a pool's thread: those are waited for when the loop and the interpreter end.
    threading.Thread(target=_work, args=(start, done), name="vllm-load", daemon=True).start()
    try:
        return await asyncio.wrap_future(done)
    except asyncio.CancelledError:
        for child in multiprocessing.active_children():
            child.kill()
        done.add_done_callback(_stop)
        raise


def _work(start: Callable[[], Served], done: "Future[Served]") -> None:
    done.set_running_or_notify_cancel()
    try:
        done.set_result(start())
    except LOAD_ERRORS as error:
        done.set_exception(error)
    finally:
        if not done.done():  # with anything else, who waits is told that, and Python prints what it was
            done.set_exception(RuntimeError("vLLM failed in an unknown way; see the log"))


def _stop(done: "Future[Served]") -> None:
    if done.exception() is None:
        done.result().stop()
