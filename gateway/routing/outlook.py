"""How the pools stand, by the last sample of this gateway: what the choice of a way goes by."""

from collections.abc import Sequence
from typing import Any, Literal

from gateway.contract.pools import UpstreamState, WorkerStatus

Stand = Literal["open", "tripped", "idle", "unset"]
"""Whether a model can be served in a pool.

`open`: now. `tripped`: all its upstreams' breakers are open. `idle`: no live worker has it loaded, so it waits.
`unset`: none of its upstreams has a key.
"""

_SERVES = ("ready", "on_demand")


class Outlook:
    """The workers of each pool as they were a moment ago. `version` rises when something has changed in them."""

    def __init__(self) -> None:
        self.version = 0
        self._workers: dict[str, list[WorkerStatus]] = {}
        self._states: dict[str, Any] = {}

    def sampled(self, pool: str, workers: Sequence[WorkerStatus]) -> None:
        """Note the workers of a pool whose heartbeats are fresh."""
        live = [worker for worker in workers if not worker.draining]
        states = [
            (
                {name: state.state for name, state in worker.models.items()},
                {name: state.state for name, state in worker.upstreams.items()},
            )
            for worker in live
        ]
        if states != self._states.get(pool):
            self.version += 1
            self._states[pool] = states
        self._workers[pool] = live

    def workers(self, pool: str) -> Sequence[WorkerStatus]:
        """List the live workers of a pool."""
        return self._workers.get(pool, ())

    def capacity(self, pool: str) -> int:
        """Count the requests that the live workers of a pool run at once."""
        return sum(worker.capacity for worker in self._workers.get(pool, ()))

    def upstream(self, pool: str, name: str) -> UpstreamState | None:
        """Say how an upstream stands, by the worker that sees it best; None where no worker has told."""
        told = [state for worker in self.workers(pool) if (state := worker.upstreams.get(name)) is not None]
        return min(told, key=lambda state: _WORST.index(state.state), default=None)

    def stand(self, model: str, pool: str, upstreams: Sequence[str] = ()) -> Stand:
        """Say how a model stands in a pool; `upstreams` are those that may serve it there. Unseen pools are open."""
        live = self._workers.get(pool)
        if live is None:
            return "open"
        states = [state.state for worker in live if (state := worker.models.get(model)) is not None]
        if "unset" in states and not any(state in _SERVES for state in states):
            return "unset"
        if not any(state in _SERVES for state in states):
            return "idle"
        return self._upstreams_stand(pool, upstreams) if upstreams else "open"

    def serves(self, pool: str, upstream: str) -> bool:
        """Say whether an upstream may be called from a pool: it has a key, and its breaker is not open."""
        told = self.upstream(pool, upstream)
        return told is None or told.state in ("closed", "half_open")

    def _upstreams_stand(self, pool: str, upstreams: Sequence[str]) -> Stand:
        states = {told.state if (told := self.upstream(pool, name)) else "closed" for name in upstreams}
        if states & {"closed", "half_open"}:
            return "open"
        return "tripped" if "open" in states else "unset"


_WORST: tuple[str, ...] = ("closed", "half_open", "open", "unset")
"""The states of a breaker, the best first."""
