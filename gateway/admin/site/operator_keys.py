"""The keys of operators: which one is whose role."""

import hmac
from collections.abc import Mapping
from hashlib import sha256


class OperatorKeys:
    """The keys that open the dashboard and the admin API, each with its role, by their hashes."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._hashes = [(sha256(key.encode()).digest(), role) for role, key in keys.items() if key]

    def role_of(self, given: str) -> str | None:
        """Give the role of a key; None of an unknown one. All are compared, in constant time."""
        hashed = sha256(given.encode("utf-8", "surrogatepass")).digest()
        found = [role for wanted, role in self._hashes if hmac.compare_digest(wanted, hashed)]
        return found[0] if found else None


NAMES = {"owner": "admin key", "billing": "billing key", "viewer": "viewer key"}
"""What a holder of a key is called in the audit log: a key says a role, and no person."""
