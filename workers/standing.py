"""How a worker stands: what it says of itself with each heartbeat."""

import os
import resource
import socket
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gateway.contract.pools import ModelState, PoolSpec, WorkerStatus, WorkerTimes
from workers.engine import Calling, Engine
from workers.run import Runner

_STATM = Path("/proc/self/statm")


def default_name(pool: str) -> str:
    """Name this process: by pool, machine and process id."""
    return f"{pool}-{socket.gethostname()}-{os.getpid()}"


def own_version() -> str:
    """Give the installed version of Faregate; empty where it runs from a bare checkout."""
    try:
        return version("faregate")
    except PackageNotFoundError:
        return ""


def memory_bytes() -> int:
    """Give the resident memory of this process; its peak where the system has no /proc."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Standing:
    """The state of each model, and the worker's word about itself."""

    def __init__(self, worker: str, spec: PoolSpec) -> None:
        self._worker = worker
        self._spec = spec
        self._version = own_version()
        self.models: dict[str, ModelState] = {model.name: ModelState(state="loading") for model in spec.models}
        self.draining = False
        """Whether it is about to end."""
        self._began_s = time.monotonic()
        self._loaded_s: float | None = None

    def report(self, model: str, state: ModelState) -> None:
        """Note how a model stands."""
        self.models[model] = state

    def loaded(self) -> None:
        """Note that loading is over."""
        self._loaded_s = time.monotonic()

    def ready(self) -> frozenset[str]:
        """Name the models that are ready, and those that are loaded when a request comes for them."""
        return frozenset(name for name, state in self.models.items() if state.state in ("ready", "on_demand"))

    @property
    def is_unset(self) -> bool:
        """Whether a model is here that nothing is missing of but its upstream's key."""
        return any(state.state == "unset" for state in self.models.values())

    def status(self, engine: Engine, runner: Runner, *, told_off: bool = False) -> WorkerStatus:
        """Make the status that goes with a heartbeat; capacity counts the slots in use, too.

        `told_off` says whether an operator wants it to take no more.
        """
        now_s = time.monotonic()
        return WorkerStatus(
            worker=self._worker,
            pool=self._spec.pool,
            engine=self._spec.engine,
            pid=os.getpid(),
            version=self._version,
            models=dict(self.models),
            capacity=engine.capacity() + runner.running if self.ready() else 0,
            running=runner.running,
            memory_bytes=memory_bytes(),
            draining=self.draining or told_off,
            upstreams=engine.upstreams() if isinstance(engine, Calling) else {},
            times=WorkerTimes(
                up_ms=int((now_s - self._began_s) * 1000),
                load_ms=int(((self._loaded_s or now_s) - self._began_s) * 1000),
                busy_ms=runner.busy_ms,
            ),
        )
