"""Which GPUs a worker takes, where several workers and pools share a machine.

The workers of a pool have the same options, so they tell each other apart by lock files of this machine: the
first takes the first GPUs of its `devices`, the second the next ones, and around again where there are more workers
than GPUs. The kernel drops a lock with its process, whatever ended that.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path

from workers.engines.vllm.serving import Serving


def lock_folder() -> Path:
    """Name the folder of locks: one for each user of the machine."""
    return Path(tempfile.gettempdir()) / f"faregate-vllm-{os.getuid()}"


class Claim:
    """A worker's place among those of its pool on this machine, until it is released or the process ends."""

    def __init__(self, folder: Path, place: int, lock: int, devices: list[int]) -> None:
        self.place = place
        self.devices = devices
        """The GPUs by number; empty takes what CUDA shows."""
        self._folder = folder
        self._lock = lock

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other worker here loads: vLLM measures what memory is free, and gives up where that moves."""
        lock = os.open(self._folder / "loading", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def release(self) -> None:
        """Leave the place to another worker."""
        os.close(self._lock)


def claim_devices(serving: Serving, folder: Path) -> Claim:
    """Take the first place that no other worker of this model has. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    model = sha256(serving.name.encode()).hexdigest()[:16]
    for place in count():
        lock = os.open(folder / f"{model}-{place}", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return Claim(folder, place, lock, _share(serving, place))
    raise AssertionError("count() does not end")


def _share(serving: Serving, place: int) -> list[int]:
    options = serving.options
    each = options.tensor_parallel_size * options.pipeline_parallel_size
    shares = [options.devices[at : at + each] for at in range(0, len(options.devices) - each + 1, each)]
    return shares[place % len(shares)] if shares else []
