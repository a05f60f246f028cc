"""What surrounds every page: who is there, which page it is, for which period, and what the answer's guards need."""

from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlencode

import msgspec

from gateway.admin.site.cookies import Toast
from gateway.admin.site.nav import ADMIN_PLACES, OWNER_PLACES, Place, place_of
from gateway.admin.site.period import COMMON_ZONES, Period
from gateway.admin.site.visitor import Visitor

Part = Literal["page", "main", "dialog"]
CARRIED = ("range", "from", "to", "tz")
"""Parameters that go along from page to page."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What templates know beside what a page gives them; macros know it too."""

    visitor: Visitor | None
    path: str
    query: Sequence[tuple[str, str]]
    period: Period
    nonce: str
    page_id: str
    part: Part = "page"
    """What of the page is written: all of it, its main part, or what a dialog shows."""
    toast: Toast | None = None
    theme: str = "auto"

    @property
    def csrf(self) -> str:
        """The token that forms bring along."""
        return self.visitor.csrf if self.visitor else ""

    @property
    def places(self) -> tuple[Place, ...]:
        """The pages that the head leads to."""
        if self.visitor is None:
            return ()
        return ADMIN_PLACES if self.visitor.kind == "operator" else OWNER_PLACES

    @property
    def here(self) -> Place | None:
        """The page of the navigation that this one lies under."""
        return place_of(self.path, self.places)

    @property
    def home(self) -> str:
        """The first page of whoever asks."""
        return self.places[0].path if self.places else "/usage" if self.path.startswith("/usage") else "/admin"

    @property
    def zone_choices(self) -> tuple[str, ...]:
        """The time zones to choose from; the address may name any other."""
        mine = self.period.zone_name
        return COMMON_ZONES if mine in COMMON_ZONES else (mine, *COMMON_ZONES)

    @property
    def sign_out_path(self) -> str:
        """Where the sign-out button leads."""
        return "/usage/sign-out" if self.visitor and self.visitor.kind == "owner" else "/admin/sign-out"

    def get(self, name: str, default: str = "") -> str:
        """Give a parameter of the address."""
        return dict(self.query).get(name, default)

    def link(self, path: str | None = None, /, **changes: object) -> str:
        """Write the address of this page with some parameters changed (None removes one), or of another page.

        Another page gets the period and the zone along. `from_` stands for `from`.
        """
        changed = {name.rstrip("_"): value for name, value in changes.items()}
        kept = [
            (name, value)
            for name, value in self.query
            if name not in changed and (path is None or name in CARRIED) and (path is not None or name != "after")
        ]
        new = [(name, str(value)) for name, value in changed.items() if value is not None and value != ""]
        query = urlencode([*kept, *new])
        return f"{path or self.path}{'?' if query else ''}{query}"
