"""Signing in and out: an operator with a key of theirs, an API key's owner with that key."""

from typing import Any

import structlog
from litestar import Response
from litestar.di import NamedDependency
from litestar.response import Redirect

from gateway.admin.site import csrf
from gateway.admin.site.cookies import BEFORE, BEFORE_S, PATH, Signer, brief_cookie, session_cookie
from gateway.admin.site.gate import kind_of
from gateway.admin.site.operator_keys import NAMES, OperatorKeys
from gateway.admin.site.page import action, page
from gateway.admin.site.sessions import LASTS, Opened, WebSessions
from gateway.admin.site.throttle import Throttle
from gateway.admin.site.view import View
from gateway.admin.site.visitor import Kind
from gateway.errors import FaregateError, Unauthorized
from gateway.flow.authenticate import let_in
from gateway.flow.origin import origin
from gateway.ledger.keyring import Keyring

log = structlog.get_logger()

MOST_KEY = 512


class SignInDesk:
    """What signing in works with."""

    def __init__(
        self,
        sessions: WebSessions,
        keys: OperatorKeys,
        keyring: Keyring,
        signer: Signer,
        *,
        throttle: Throttle,
        has_oidc: bool,
    ) -> None:
        self.sessions = sessions
        self.keys = keys
        self.keyring = keyring
        self.signer = signer
        self.throttle = throttle
        self.has_oidc = has_oidc

    async def open(self, kind: Kind, given: str, page_id: str) -> Opened:
        """Open a session for a key. Raises Unauthorized, in the same words for all that do not fit, or Forbidden."""
        if kind == "operator":
            role = self.keys.role_of(given)
            if role is None:
                raise Unauthorized("This key opens nothing here.", code="invalid_admin_key")
            return await self.sessions.open_operator(NAMES[role], role, page_id)
        caller = self.keyring.find(given) or await self.keyring.look_up(given)
        if caller is None or given.startswith("ey"):
            raise Unauthorized("This key is not known, or not live any more.")
        return await self.sessions.open_owner(let_in(caller))


def safe_next(target: str, kind: Kind) -> str:
    """Give where to go after signing in: an address of this site's own pages, or its first page."""
    home = PATH[kind]
    plain = target.isprintable() and "\\" not in target and not target.startswith("//")
    inside = target == home or target.startswith((f"{home}/", f"{home}?", f"{home}.", f"{home}#"))
    return target if plain and inside and "/sign-" not in target else home


def enter(view: View, kind: Kind, opened: Opened, target: str) -> Response[Any]:
    """Answer with the cookie of a new session, and the way on."""
    lasts_s = int(LASTS[kind].total_seconds())
    answer = Redirect(target, status_code=303)
    answer.set_cookie(session_cookie(kind, opened.token, secure=view.secure, lasts_s=lasts_s))
    answer.set_cookie(brief_cookie(BEFORE, "", path=PATH[kind], secure=view.secure, lasts_s=0))
    return answer


def form_page(view: View, desk: SignInDesk, *, error: str = "", status: int = 200) -> Response[Any]:
    """Answer with the sign-in form."""
    kind = kind_of(view.request.url.path)
    value, token = csrf.begin(view.request, desk.signer)
    answer = view.render(
        "sign_in.html",
        status=status,
        kind=kind,
        token=token,
        error=error,
        next=safe_next(view.query.get("next", ""), kind),
        has_oidc=desk.has_oidc and kind == "operator",
    )
    answer.set_cookie(brief_cookie(BEFORE, value, path=PATH[kind], secure=view.secure, lasts_s=BEFORE_S))
    return answer


async def _form(view: NamedDependency[View], desk: NamedDependency[SignInDesk]) -> Response[Any]:
    """Show the form; who is signed in already goes on."""
    kind = kind_of(view.request.url.path)
    if view.is_signed_in:
        return Redirect(safe_next(view.query.get("next", ""), kind), status_code=303)
    return form_page(view, desk)


async def _sign_in(view: NamedDependency[View], desk: NamedDependency[SignInDesk]) -> Response[Any]:
    """Open a session for the key of the form: always a new one, whatever cookie came along."""
    await csrf.check_before(view.request, desk.signer)
    kind = kind_of(view.request.url.path)
    form = await view.form()
    address = origin().address()
    try:
        await desk.throttle.take(address)
        if view.is_signed_in:
            await desk.sessions.end(view.visitor)
        opened = await desk.open(kind, form.get("key", "")[:MOST_KEY], view.page_id)
    except FaregateError as error:
        log.info("sign_in.refused", kind=kind, reason=error.code, page_id=view.page_id)
        return form_page(view, desk, error=error.message, status=error.status)
    await desk.throttle.forgive(address)
    return enter(view, kind, opened, safe_next(form.get("next", ""), kind))


async def _sign_out(view: NamedDependency[View], desk: NamedDependency[SignInDesk]) -> Response[Any]:
    """End the session, here and in the browser."""
    kind = kind_of(view.request.url.path)
    await desk.sessions.end(view.visitor)
    answer = Redirect(f"{PATH[kind]}/sign-in", status_code=303)
    answer.set_cookie(session_cookie(kind, "", secure=view.secure, lasts_s=0))
    return answer


show_admin_form = page("/admin/sign-in", needs="anyone", data=False)(_form)
show_owner_form = page("/usage/sign-in", needs="anyone", data=False)(_form)
sign_in_admin = action("/admin/sign-in", needs="anyone", most_bytes=16_384)(_sign_in)
sign_in_owner = action("/usage/sign-in", needs="anyone", most_bytes=16_384)(_sign_in)
sign_out_admin = action("/admin/sign-out", needs="viewer")(_sign_out)
sign_out_owner = action("/usage/sign-out", needs="key")(_sign_out)

SIGN_IN = (show_admin_form, show_owner_form, sign_in_admin, sign_in_owner, sign_out_admin, sign_out_owner)
