"""Addresses of stored media that need no key: each names one blob, says until when it serves, and is signed.

The signature is HMAC-SHA256 over name and end, with a key made from the admin key, which all gateways of a system
share. To change the admin key is to revoke every address that was given.
"""

import hashlib
import hmac
import time
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, unquote

from gateway.contract.events import MediaOutput
from gateway.errors import NotFound

PURPOSE = b"faregate blob addresses 1"
PATH = "/v1/blobs/"


class Addresses:
    """Makes addresses of blobs, and checks those that come back."""

    def __init__(self, secret: str, base_url: str, lasts_s: int, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.new(secret.encode(), PURPOSE, hashlib.sha256).digest()
        self.base = base_url.rstrip("/")
        """Where the gateway answers, for addresses that must be whole."""
        self._lasts_s = lasts_s
        self._clock = clock

    def signed_url(self, name: str, lasts_s: int | None = None) -> str:
        """Give an address of a blob that serves from now for `lasts_s` seconds, or as long as is set."""
        expires = int(self._clock()) + (self._lasts_s if lasts_s is None else lasts_s)
        return f"{self.base}{PATH}{quote(name)}?expires={expires}&signature={self._sign(name, expires)}"

    def of_output(self, output: MediaOutput, lasts_s: int | None = None) -> str | None:
        """Give an address of an output; None where it came inline and lies in no store."""
        return self.signed_url(output.blob, lasts_s) if output.blob else None

    def stamp(self, name: str, lasts_s: int) -> tuple[int, str]:
        """Sign a name of something else than a blob; answers until when that holds, and the signature."""
        expires = int(self._clock()) + lasts_s
        return expires, self._sign(name, expires)

    def named(self, url: str) -> str | None:
        """Give the blob that an address of ours names; None for what is none. Raises NotFound as `check`."""
        if not url.startswith(self.base + PATH):
            return None
        path, _, query = url.removeprefix(self.base + PATH).partition("?")
        name, given = unquote(path), dict(parse_qsl(query))
        self.check(name, given.get("expires", ""), given.get("signature", ""))
        return name

    def check(self, name: str, expires: str, signature: str) -> None:
        """Raise NotFound unless an address is one that was given and its time has not passed."""
        until = int(expires) if expires.isascii() and expires.isdigit() and len(expires) < 16 else 0
        signed = hmac.compare_digest(self._sign(name, until).encode(), signature.encode("utf-8", "replace"))
        if not signed or until < self._clock():
            raise NotFound("This address is not valid, or no longer; ask for the request again to get a new one.")

    def ticket(self, words: str) -> str:
        """Sign words that grant something else than a blob; whoever checks them signs them again and compares."""
        return hmac.new(self._key, f"ticket\n{words}".encode(), hashlib.sha256).hexdigest()

    def _sign(self, name: str, expires: int) -> str:
        return hmac.new(self._key, f"{name}\n{expires}".encode(), hashlib.sha256).hexdigest()
