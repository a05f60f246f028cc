"""Models as Replicate names them: `owner/name`, and versions by an id.

A model of ours without an owner belongs to `faregate`. Each has one version, whose id is made from its name. Ids and
names that routes to Replicate have are known, too.
"""

from functools import cache
from hashlib import sha256

from gateway.catalog.model import Model, Snapshot
from gateway.http.model_names import Names

OWNER = "faregate"


@cache
def version_id(name: str) -> str:
    """Give the id of the version of a model: 64 hexadecimal digits, as Replicate's."""
    return sha256(f"{OWNER}:{name}".encode()).hexdigest()


def full_name(name: str) -> tuple[str, str]:
    """Give owner and name of a model."""
    owner, slash, below = name.partition("/")
    return (owner, below) if slash else (OWNER, name)


class ReplicateNames(Names):
    """Finds models by what Replicate's clients call them."""

    def __init__(self) -> None:
        super().__init__("replicate", _others)

    def find(self, snapshot: Snapshot, name: str) -> Model | None:
        """Find a model; None also for a version that is another model's."""
        found = super().find(snapshot, name)
        if found is not None or ":" not in name:
            return found
        model, _, version = name.rpartition(":")
        found = super().find(snapshot, model)
        return found if found is not None and super().find(snapshot, version) is found else None


def _others(model: Model, wire: str) -> list[str]:
    """Give the other names of a model, or of what a route calls it."""
    if wire:
        return [part for part in wire.split(":", 1) if part != wire]
    owned = [f"{OWNER}/{name}" for name in (model.name, *model.aliases) if "/" not in name]
    return [version_id(model.name), *owned]
