"""Signs what is sent, in the way that the receivers of a family verify it."""

import hashlib
from collections.abc import Awaitable, Callable

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.webhooks.events import Due
from gateway.webhooks.message import SignedAs
from gateway.webhooks.public_keys import PublicKeys
from gateway.webhooks.secrets import Secrets
from gateway.webhooks.signature import signed_headers


class Signing:
    """Makes the headers of signed bodies. Raises Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.secrets = Secrets(engine)
        self.public_keys = PublicKeys(engine)
        self._signers: dict[SignedAs, Callable[[Due, int, bytes], Awaitable[dict[str, str]]]] = {
            "standard": self._standard,
            "fal": self._fal,
        }

    async def headers(self, signed: SignedAs, due: Due, timestamp_s: int, body: bytes) -> dict[str, str]:
        """Give the headers of one try; the timestamp is that of the try."""
        return await self._signers[signed](due, timestamp_s, body)

    async def _standard(self, due: Due, timestamp_s: int, body: bytes) -> dict[str, str]:
        return signed_headers(await self.secrets.valid(due.account_id), due.key.id, timestamp_s, body)

    async def _fal(self, due: Due, timestamp_s: int, body: bytes) -> dict[str, str]:
        """Sign request, account, timestamp and the body's hash, a line each (fal's documentation of webhooks)."""
        told = (due.key.request_id, str(due.account_id), str(timestamp_s), hashlib.sha256(body).hexdigest())
        signature = await self.public_keys.signature("\n".join(told).encode())
        return {
            "x-fal-webhook-request-id": told[0],
            "x-fal-webhook-user-id": told[1],
            "x-fal-webhook-timestamp": told[2],
            "x-fal-webhook-signature": signature.hex(),
        }
