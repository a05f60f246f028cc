"""Which models are in memory: as many as the budget holds, and the least recently used leaves."""

from collections.abc import Container


class Shelf:
    """The sizes of the loaded models, in the order of their last use. A budget of 0 has no end."""

    def __init__(self, budget_bytes: int = 0) -> None:
        self.budget_bytes = budget_bytes
        self._sizes: dict[str, int] = {}  # the least recently used first

    def __contains__(self, name: str) -> bool:
        """Say whether a model is in memory."""
        return name in self._sizes

    @property
    def used_bytes(self) -> int:
        """What the loaded models take together."""
        return sum(self._sizes.values())

    def put(self, name: str, size_bytes: int) -> None:
        """Note that a model is loaded, and takes so much."""
        self._sizes.pop(name, None)
        self._sizes[name] = size_bytes

    def touch(self, name: str) -> None:
        """Note that a loaded model is used."""
        self._sizes[name] = self._sizes.pop(name)

    def drop(self, name: str) -> None:
        """Note that a model has left."""
        self._sizes.pop(name, None)

    def ever_fits(self, size_bytes: int) -> bool:
        """Say whether a model of this size could be loaded at all."""
        return not self.budget_bytes or size_bytes <= self.budget_bytes

    def fits(self, size_bytes: int) -> bool:
        """Say whether a model of this size can be loaded while all others stay."""
        return not self.budget_bytes or self.used_bytes + size_bytes <= self.budget_bytes

    def leavers(self, size_bytes: int, *, keep: Container[str] = ()) -> list[str]:
        """Name those that leave so that so much more fits, the least recently used first."""
        leaving: list[str] = []
        over = self.used_bytes + size_bytes - self.budget_bytes if self.budget_bytes else 0
        for name, size in self._sizes.items():
            if over <= 0:
                break
            if name not in keep:
                leaving.append(name)
                over -= size
        return leaving
