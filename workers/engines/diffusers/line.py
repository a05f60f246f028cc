"""What runs next: compatible requests together, loaded models first, and nobody passed over for long.

Requests stand in the order of their arrival. The oldest goes first, with all that can be drawn in the same call. It is
passed over only while its model is not in memory, another would have to leave for it, and someone behind it needs no
loading; but after `MOST_PASSES` times or `MOST_WAIT_S` seconds its turn has come.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import msgspec

MOST_PASSES = 4
MOST_WAIT_S = 10.0
CHOICE = 4
"""How many requests a worker of several models takes at least, so that it has something to choose from."""
SHORT_S = 2.0
"""When what is drawn has so little left, the next is taken; before, another worker could be free for it sooner."""

Job = TypeVar("Job")


class Place(msgspec.Struct, Generic[Job], kw_only=True, eq=False):
    """One request in the line."""

    job: Job
    model: str
    company: Hashable
    """Requests of one model run together where this is equal."""
    images: int
    """How many images it has drawn at once."""
    arrived_s: float
    passes: int = 0


class Pick(msgspec.Struct, Generic[Job], frozen=True):
    """What to do next: run these together; or, where there are none, look again at `look_s`."""

    places: list[Place[Job]]
    look_s: float = 0.0


class Limits(msgspec.Struct, frozen=True):
    """How far a model's requests are put together."""

    images: int
    wait_s: float


class Line(Generic[Job]):
    """The requests that wait inside of the engine."""

    def __init__(self, limits: Callable[[str], Limits]) -> None:
        self._limits = limits
        self._places: list[Place[Job]] = []

    def __len__(self) -> int:
        """Count those that wait."""
        return len(self._places)

    def join(self, place: Place[Job]) -> None:
        """Stand at the end."""
        self._places.append(place)

    def leave(self, place: Place[Job]) -> None:
        """Go away, if still there."""
        if place in self._places:
            self._places.remove(place)

    def pick(self, is_cheap: Callable[[str], bool], now_s: float) -> Pick[Job] | None:
        """Take out what runs next; None when nobody waits. `is_cheap`: the model needs nobody to leave memory."""
        looks: list[float] = []
        for first in self._heads(is_cheap, now_s):
            limits = self._limits(first.model)
            group = self._company(first, limits.images)
            full = sum(place.images for place in group) >= limits.images
            ready_s = first.arrived_s + limits.wait_s
            if full or ready_s <= now_s:
                self._take(group, first)
                return Pick(group)
            looks.append(ready_s)
        return Pick([], min(looks)) if looks else None

    def _heads(self, is_cheap: Callable[[str], bool], now_s: float) -> list[Place[Job]]:
        """Give the first of each company, in the order in which they are to run."""
        heads: dict[Hashable, Place[Job]] = {}
        for place in self._places:
            heads.setdefault((place.model, place.company), place)

        def waits_for_memory(place: Place[Job]) -> bool:
            due = place.passes >= MOST_PASSES or now_s - place.arrived_s >= MOST_WAIT_S
            return not due and not is_cheap(place.model)

        return sorted(heads.values(), key=waits_for_memory)  # a stable sort: by arrival among equals

    def _company(self, first: Place[Job], most_images: int) -> list[Place[Job]]:
        group, images = [first], first.images
        for place in self._places:
            if place is first or place.model != first.model or place.company != first.company:
                continue
            if images + place.images > most_images:
                break
            group.append(place)
            images += place.images
        return group

    def _take(self, group: list[Place[Job]], first: Place[Job]) -> None:
        for place in self._places[: self._places.index(first)]:
            if place.model != first.model:
                place.passes += 1
        self._places = [place for place in self._places if place not in group]


def room(*, most_images: int, models: int, waiting: int, left_s: float) -> int:
    """Say how many more requests to take: a full batch, or enough to choose from; none behind long work.

    `left_s` is how long what is drawn now has left, 0 when nothing is.
    """
    if left_s > SHORT_S:
        return 0
    wanted = max(most_images, CHOICE) if models > 1 else most_images
    return max(0, wanted - waiting)
