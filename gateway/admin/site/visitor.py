"""Who asks for a page, as their session says."""

from typing import Literal

import msgspec

from gateway.admin.site.roles import ROLES, Need, may
from gateway.ledger.audit import Actor

Kind = Literal["operator", "owner"]
"""An operator works on /admin; an owner of an API key reads /usage."""


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks."""

    kind: Kind
    name: str
    """What audit entries and the page's head call them: an e-mail, "admin key", or a key's own name."""
    role: str
    """`viewer`, `billing` or `owner`; of an API key's owner `key`."""
    csrf: str
    """What each form and each change must bring along."""
    token_hash: bytes
    api_key_id: int = 0
    account_id: int = 0

    def may(self, needs: Need) -> bool:
        """Say whether they may do what needs this."""
        if needs == "anyone":
            return True
        if needs == "key":
            return self.kind == "owner"
        return self.kind == "operator" and may(self.role, needs)

    def why_not(self, needs: Need) -> str:
        """Say why an action is closed to them, for its title; empty where it is open."""
        if self.may(needs):
            return ""
        if needs in ROLES and self.kind == "operator":
            least = " or ".join(ROLES[ROLES.index(needs) :])
            return f"This needs the role {least}; yours is {self.role}."
        return "This is not for who signs in with an API key." if self.kind == "owner" else "Sign in with an API key."

    @property
    def actor(self) -> Actor:
        """Who they are to the audit log."""
        return Actor(name=self.name, role=self.role, door="dashboard")
