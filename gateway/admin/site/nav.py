"""The pages that the head of every page leads to, and the letters that jump to them after `g`."""

import msgspec


class Place(msgspec.Struct, frozen=True):
    """A page in the navigation."""

    path: str
    title: str
    letter: str
    icon: str
    also: tuple[str, ...] = ()
    """Where else its pages lie."""


ADMIN_PLACES = (
    Place("/admin", "Overview", "o", "pulse"),
    Place("/admin/models", "Models", "m", "cube", also=("/admin/prices", "/admin/backtests")),
    Place("/admin/accounts", "Accounts", "a", "wallet"),
    Place("/admin/keys", "Keys", "k", "key"),
    Place("/admin/requests", "Requests", "r", "list"),
    Place("/admin/queues", "Queues & workers", "q", "queue"),
    Place("/admin/books", "Books", "b", "book"),
    Place("/admin/webhooks", "Webhooks", "w", "hook"),
    Place("/admin/audit", "Audit", "u", "eye"),
    Place("/admin/playground", "Playground", "p", "play"),
)
OWNER_PLACES = (
    Place("/usage", "Usage", "u", "pulse"),
    Place("/usage/requests", "Requests", "r", "list"),
    Place("/usage/statements", "Statements", "s", "book"),
)


def place_of(path: str, places: tuple[Place, ...]) -> Place | None:
    """Find the page that an address lies under: the longest that it begins with."""
    under = [
        (len(root), place)
        for place in places
        for root in (place.path, *place.also)
        if path == root or path.startswith(f"{root}/")
    ]
    return max(under, key=lambda found: found[0], default=(0, None))[1]
