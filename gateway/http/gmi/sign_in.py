"""Signing in, for the vendor's package, which knows no API keys: the password is one, and tokens stand for it.

A session is over with its time, or with its key. There is no second factor: a key is none to begin with.
"""

from typing import Any

import msgspec
from litestar import Controller, get, patch, post
from litestar.di import NamedDependency

from gateway.errors import Unauthorized
from gateway.flow.authenticate import identify, let_in
from gateway.http.dialect import Asking
from gateway.http.errors import gmi_account_body
from gateway.http.gmi.bodies import RefreshBody, SessionBody, SignInBody
from gateway.http.handlers import handlers_of
from gateway.http.raw import decode, read_body, read_head
from gateway.ledger.keyring import Caller, Keyring
from gateway.ledger.sessions import Sessions

MOST_BYTES = 8192

_SIGN_IN = msgspec.json.Decoder(SignInBody)
_SESSION = msgspec.json.Decoder(SessionBody)
_REFRESH = msgspec.json.Decoder(RefreshBody)


class SignIn:
    """What signing in works with."""

    def __init__(self, keyring: Keyring, sessions: Sessions) -> None:
        self.keyring = keyring
        self.sessions = sessions

    async def by_password(self, password: str) -> Caller:
        """Find whose key a password is. Raises Unauthorized, for a session's token too: it cannot renew itself."""
        if self.sessions.key_of(password, "access") is not None:
            raise _unknown()
        return await identify(self.keyring, password)

    def by_token(self, token: str, use: Any) -> Caller:
        """Find whose key a token stands for. Raises Unauthorized."""
        caller = self.keyring.find_key(self.sessions.key_of(token, use))
        if caller is None:
            raise _unknown()
        return let_in(caller)

    def session(self, caller: Caller) -> dict[str, Any]:
        """Begin a session, or go on with one."""
        return {
            "accessToken": self.sessions.token(caller.key_id, "access"),
            "refreshToken": self.sessions.token(caller.key_id, "refresh"),
        }


def _unknown() -> Unauthorized:
    return Unauthorized("E-mail or password are not known here. The password is your API key.")


class SignInController(Controller):
    """Sessions, and who has signed in."""

    path = "/api/v1/me"
    tags = ("GMI",)
    exception_handlers = handlers_of(gmi_account_body)

    @post("/auth-tokens", status_code=200, summary="Sign in: any e-mail, and an API key as the password")
    async def sign_in(self, request: Asking, sign_in: NamedDependency[SignIn]) -> dict[str, Any]:
        """Answer with a token to begin a session with."""
        asked = decode(_SIGN_IN, await _body(request))
        caller = await sign_in.by_password(asked.password)
        return {"authToken": sign_in.sessions.token(caller.key_id, "sign-in"), "is2FARequired": False}

    @post("/sessions", status_code=200, summary="Begin a session")
    async def begin(self, request: Asking, sign_in: NamedDependency[SignIn]) -> dict[str, Any]:
        """Answer with the tokens of a session."""
        asked = decode(_SESSION, await _body(request))
        return sign_in.session(sign_in.by_token(asked.authToken, "sign-in"))

    @patch("/sessions", status_code=200, summary="Go on with a session")
    async def refresh(self, request: Asking, sign_in: NamedDependency[SignIn]) -> dict[str, Any]:
        """Answer with new tokens."""
        asked = decode(_REFRESH, await _body(request))
        return sign_in.session(sign_in.by_token(asked.refreshToken, "refresh"))

    @get("/profile", summary="Who has signed in")
    async def profile(self, request: Asking, sign_in: NamedDependency[SignIn]) -> dict[str, Any]:
        """Show the key as a user, and its account as an organisation."""
        caller = await identify(sign_in.keyring, read_head(request.scope).secret)
        return {
            "user": {"id": str(caller.key_id), "email": "", "firstName": caller.key_name, "lastName": ""},
            "organization": {"id": str(caller.account_id), "name": caller.account_name, "role": "member"},
        }


async def _body(request: Asking) -> bytes:
    return await read_body(request.receive, read_head(request.scope), MOST_BYTES)
