"""There and back: what goes with the person lies in a signed cookie, and the way back must fit it."""

import base64
import hashlib
import secrets
import time
from typing import Any
from urllib.parse import urlencode

import msgspec
import structlog
from litestar import Response
from litestar.di import NamedDependency
from litestar.response import Redirect

from gateway.admin.site.cookies import brief_cookie
from gateway.admin.site.csrf import same
from gateway.admin.site.oidc.members import name_of, role_of
from gateway.admin.site.oidc.provider import Provider
from gateway.admin.site.page import page
from gateway.admin.site.sign_in import SignInDesk, enter, form_page, safe_next
from gateway.admin.site.view import View
from gateway.errors import FaregateError, Unauthorized

log = structlog.get_logger()

COOKIE = "faregate_oidc"
PATH = "/admin/sign-in/oidc"
LASTS_S = 600


class _Trip(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    nonce: str
    verifier: str
    next: str
    at: float


@page(PATH, needs="anyone", data=False)
async def leave(
    view: NamedDependency[View], desk: NamedDependency[SignInDesk], provider: NamedDependency[Provider]
) -> Response[Any]:
    """Lead to the provider."""
    try:
        endpoints = await provider.endpoints()
    except FaregateError as error:
        return form_page(view, desk, error=error.message, status=error.status)
    trip = _Trip(
        state=secrets.token_urlsafe(24),
        nonce=secrets.token_urlsafe(24),
        verifier=secrets.token_urlsafe(48),
        next=safe_next(view.query.get("next", ""), "operator"),
        at=time.time(),
    )
    challenge = base64.urlsafe_b64encode(hashlib.sha256(trip.verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": provider.config.client_id,
        "redirect_uri": _way_back(view),
        "scope": "openid email profile",
        "state": trip.state,
        "nonce": trip.nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    mark = "&" if "?" in endpoints.authorization_endpoint else "?"
    answer = Redirect(f"{endpoints.authorization_endpoint}{mark}{urlencode(asked)}", status_code=303)
    signed = desk.signer.sign("oidc", msgspec.json.encode(trip))
    answer.set_cookie(brief_cookie(COOKIE, signed, path=PATH, secure=view.secure, lasts_s=LASTS_S))
    return answer


@page(f"{PATH}/return", needs="anyone", data=False)
async def come_back(
    view: NamedDependency[View], desk: NamedDependency[SignInDesk], provider: NamedDependency[Provider]
) -> Response[Any]:
    """Take what the provider sent back, and open a session: always a new one."""
    try:
        trip = _read_trip(view, desk, provider)
        claims = await provider.claims(
            view.query.get("code", ""), verifier=trip.verifier, nonce=trip.nonce, redirect_uri=_way_back(view)
        )
        role = role_of(provider.config, claims)
        if view.is_signed_in:
            await desk.sessions.end(view.visitor)
        opened = await desk.sessions.open_operator(name_of(claims), role, view.page_id)
        answer = enter(view, "operator", opened, trip.next)
    except FaregateError as error:
        log.info("sign_in.refused", kind="oidc", reason=error.code, page_id=view.page_id)
        answer = form_page(view, desk, error=error.message, status=error.status)
    answer.set_cookie(brief_cookie(COOKIE, "", path=PATH, secure=view.secure, lasts_s=0))
    return answer


def _read_trip(view: View, desk: SignInDesk, provider: Provider) -> _Trip:
    content = desk.signer.read("oidc", view.request.cookies.get(COOKIE, ""))
    trip = msgspec.json.decode(content, type=_Trip) if content else None
    if trip is None or time.time() - trip.at > LASTS_S or not same(view.query.get("state", ""), trip.state):
        raise Unauthorized("This sign-in did not begin here, or took too long: begin again.", code="oidc_refused")
    if view.query.get("iss", provider.config.issuer) != provider.config.issuer:  # RFC 9207
        raise Unauthorized("Another provider has answered: begin again.", code="oidc_refused")
    if "error" in view.query or not view.query.get("code"):
        raise Unauthorized("The identity provider did not let you in.", code="oidc_refused")
    return trip


def _way_back(view: View) -> str:
    return f"{view.base_url}{PATH}/return"


OIDC = (leave, come_back)
