"""The keys that sign webhooks in public: Ed25519 pairs of the whole system, whose public halves everybody may read.

They lie beside the secrets of the accounts, under the account number 0, which no account has. One is made when first
needed; several may be valid at a time, so that one can follow another without a gap.
"""

import base64
import hashlib
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.webhooks import webhook_secret
from gateway.ledger.transaction import transaction

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SYSTEM = 0
"""Stands in the place of an account's number for what signs on behalf of the whole system."""
SEED_BYTES = 32


class PublicKeys:
    """Keeps the pairs. Every method raises Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def signature(self, message: bytes) -> bytes:
        """Sign with the newest key."""
        return _pair((await self._seeds())[0]).sign(message)

    async def shown(self) -> dict[str, Any]:
        """Show the public halves as a JSON Web Key Set (RFC 7517, RFC 8037)."""
        return {"keys": [_shown(_pair(seed)) for seed in await self._seeds()]}

    async def _seeds(self) -> Sequence[bytes]:
        """Give what is valid, the newest first; the first call makes one."""
        table = webhook_secret.c
        live = or_(table.expires_at.is_(None), table.expires_at > func.now())
        wanted = select(table.secret).where(table.account_id == SYSTEM, live).order_by(table.id.desc())
        made = insert(webhook_secret).values(account_id=SYSTEM, secret=secrets.token_bytes(SEED_BYTES))
        once = made.on_conflict_do_nothing(index_elements=["account_id"], index_where=table.expires_at.is_(None))
        async with transaction(self._engine) as connection:
            found = (await connection.execute(wanted)).scalars().all()
            if not found:
                await connection.execute(once)
                found = (await connection.execute(wanted)).scalars().all()
            return found


def _pair(seed: bytes) -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # here: it takes 6 MB

    return Ed25519PrivateKey.from_private_bytes(seed)


def _shown(key: "Ed25519PrivateKey") -> dict[str, Any]:
    public = key.public_key().public_bytes_raw()
    name = hashlib.sha256(public).hexdigest()[:16]
    return {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": name, "x": _base64url(public)}


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
