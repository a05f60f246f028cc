"""Tokens that stand for an API key, for clients that sign in: they name the key, and hold nothing of it.

Each is a JSON Web Token (RFC 7519) of HMAC-SHA256, signed with a key made from the admin key, which all gateways of a
system share. One serves no longer than its time, nor than the API key that it names: whose it is, is looked up anew
with each call. To change the admin key is to end every session.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

PURPOSE = b"faregate sessions 1"
Use = Literal["sign-in", "access", "refresh"]
LASTS_S: dict[Use, int] = {"sign-in": 300, "access": 3600, "refresh": 30 * 86_400}
MOST_CHARS = 1024
_HEAD = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says."""

    key: int
    """The id of the API key that it stands for."""
    userId: str
    """The same, under the name that clients of GMI read."""
    use: Use
    iat: int
    exp: int


_CLAIMS = msgspec.json.Decoder(Claims)


class Sessions:
    """Makes tokens, and reads those that come back."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.new(secret.encode(), PURPOSE, hashlib.sha256).digest()
        self._clock = clock

    def token(self, key_id: int, use: Use) -> str:
        """Make a token for an API key."""
        now = int(self._clock())
        claims = Claims(key=key_id, userId=str(key_id), use=use, iat=now, exp=now + LASTS_S[use])
        said = f"{_HEAD}.{_encoded(msgspec.json.encode(claims))}"
        return f"{said}.{self._signature(said)}"

    def key_of(self, token: str, use: Use) -> int | None:
        """Give the id of the API key that a token stands for; None unless it is ours, in time, and for this use."""
        said, _, signature = token.rpartition(".")
        head, _, claims = said.partition(".")
        if head != _HEAD or len(token) > MOST_CHARS:
            return None
        if not hmac.compare_digest(self._signature(said).encode(), signature.encode("utf-8", "replace")):
            return None
        read = _read(claims)
        return read.key if read is not None and read.use == use and read.exp > self._clock() else None

    def _signature(self, said: str) -> str:
        return _encoded(hmac.new(self._key, said.encode("utf-8", "replace"), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _read(claims: str) -> Claims | None:
    try:
        data: Any = base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
        return _CLAIMS.decode(data)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
