"""The provider: its addresses, its keys, and what its tokens say. Nothing of them is believed before it is checked."""

import asyncio
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from gateway.admin.site.oidc.members import OidcConfig
from gateway.errors import Unauthorized, Unavailable

ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
"""What a token may be signed with: never `none`, and nothing with a shared secret."""
KEPT_S = 3600.0
KEYS_AGAIN_S = 30.0
TIMEOUT_S = 10.0
LEEWAY_S = 60
MOST_BYTES = 1_000_000
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's own description (OpenID Connect Discovery 1.0), as far as it is needed."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class Provider:
    """Asks one provider."""

    def __init__(self, config: OidcConfig) -> None:
        self.config = config
        self._turn = asyncio.Lock()
        self._endpoints: Endpoints | None = None
        self._keys: KeySet | None = None
        self._asked_at = self._keys_at = float("-inf")

    async def endpoints(self) -> Endpoints:
        """Give the provider's addresses, asked for once an hour. Raises Unavailable."""
        async with self._turn:
            if self._endpoints is None or time.monotonic() - self._asked_at > KEPT_S:
                issuer = self.config.issuer
                body = await self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
                found = _decoded(body, Endpoints)
                if found.issuer != issuer:
                    raise _away("it calls itself by another name than FAREGATE_OIDC_ISSUER")
                for address in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
                    check_address(address)
                self._endpoints, self._asked_at = found, time.monotonic()
            return self._endpoints

    async def claims(self, code: str, *, verifier: str, nonce: str, redirect_uri: str) -> dict[str, Any]:
        """Exchange a code for what the provider says of a person. Raises Unauthorized or Unavailable."""
        endpoints = await self.endpoints()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        auth: tuple[str, str] | None = (self.config.client_id, self.config.client_secret)
        if "client_secret_basic" not in endpoints.token_endpoint_auth_methods_supported:
            form |= {"client_id": self.config.client_id, "client_secret": self.config.client_secret}
            auth = None
        body = await self._post(endpoints.token_endpoint, form, auth)
        return await self._checked(_decoded(body, _Tokens).id_token, nonce)

    async def _checked(self, id_token: str, nonce: str) -> dict[str, Any]:
        try:
            claims = jwt.decode(id_token, await self._key_set(), algorithms=list(ALGORITHMS)).claims
        except (JoseError, ValueError):
            try:  # the provider may have taken a new key into use
                claims = jwt.decode(id_token, await self._key_set(anew=True), algorithms=list(ALGORITHMS)).claims
            except (JoseError, ValueError) as error:
                raise _refused() from error
        wanted = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self.config.issuer},
            aud={"essential": True, "value": self.config.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            wanted.validate(claims)
        except (JoseError, ValueError, TypeError) as error:
            raise _refused() from error
        if claims.get("azp", self.config.client_id) != self.config.client_id:
            raise _refused()
        return dict(claims)

    async def _key_set(self, *, anew: bool = False) -> KeySet:
        endpoints = await self.endpoints()
        async with self._turn:
            age = time.monotonic() - self._keys_at
            if self._keys is None or age > (KEYS_AGAIN_S if anew else KEPT_S):
                content = _decoded(await self._get(endpoints.jwks_uri), dict[str, Any])
                try:
                    self._keys, self._keys_at = KeySet.import_key_set(content), time.monotonic()
                except (JoseError, ValueError, KeyError, TypeError) as error:
                    raise _away("its keys cannot be read") from error
            return self._keys

    async def _get(self, address: str) -> bytes:
        check_address(address)
        return await self._ask(httpx.Request("GET", address))

    async def _post(self, address: str, form: dict[str, str], auth: tuple[str, str] | None) -> bytes:
        request = httpx.Request("POST", address, data=form, headers={"accept": "application/json"})
        return await self._ask(request, auth)

    async def _ask(self, request: httpx.Request, auth: tuple[str, str] | None = None) -> bytes:
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
                answer = await client.send(request, auth=auth)
        except httpx.HTTPError as error:
            raise _away("it does not answer") from error
        if request.method == "POST" and 400 <= answer.status_code < 500:
            raise _refused()
        if answer.status_code != 200 or len(answer.content) > MOST_BYTES:
            raise _away(f"it answers {answer.status_code}")
        return answer.content


def check_address(address: str) -> None:
    """Refuse an address that secrets may not go to: without TLS, but for this machine itself. Raises Unavailable."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _HERE):
        raise _away("one of its addresses is without TLS")


def _decoded(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise _away("its answer cannot be read") from error


def _away(why: str) -> Unavailable:
    return Unavailable(f"The identity provider cannot be used: {why}.", code="oidc_away")


def _refused() -> Unauthorized:
    return Unauthorized("The identity provider's answer does not fit this sign-in: begin again.", code="oidc_refused")
