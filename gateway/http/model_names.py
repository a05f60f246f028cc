"""What models are called in the dialect of another cloud: by our names, by aliases, and by what its upstreams say."""

from collections.abc import Callable, Iterable

from gateway.catalog.model import Model, Route, Snapshot
from gateway.contract.pools import ProtocolName


class Names:
    """Finds models by our names, by aliases, and by what upstreams of one protocol call them."""

    def __init__(
        self, protocol: ProtocolName, more: Callable[[Model, str], list[str]] = lambda model, wire: []
    ) -> None:
        self.protocol: ProtocolName = protocol
        self._more = more
        self._snapshot: Snapshot | None = None
        self._index: dict[str, str] = {}

    def find(self, snapshot: Snapshot, name: str) -> Model | None:
        """Find a model; None where nobody calls one so."""
        found = snapshot.model(name)
        if found is not None:
            return found
        if self._snapshot is not snapshot:
            self._index, self._snapshot = self._indexed(snapshot), snapshot
        return snapshot.models.get(self._index.get(name, ""))

    def wires(self, snapshot: Snapshot, models: Iterable[Model]) -> set[str]:
        """Give what upstreams of the protocol call these models."""
        return {route.model for model in models for route in model.routes if self._speaks(snapshot, route)}

    def _speaks(self, snapshot: Snapshot, route: Route) -> bool:
        upstream = snapshot.upstreams.get(route.upstream)
        return upstream is not None and upstream.protocol == self.protocol

    def _indexed(self, snapshot: Snapshot) -> dict[str, str]:
        index: dict[str, str] = {}
        for model in snapshot.models.values():
            for other in self._more(model, ""):
                index.setdefault(other, model.name)
            for route in model.routes:
                if self._speaks(snapshot, route):
                    for other in (route.model, *self._more(model, route.model)):
                        index.setdefault(other, model.name)
        return index
