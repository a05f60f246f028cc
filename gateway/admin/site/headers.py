"""What every answer of the site carries: no script, style or frame but our own, and nothing of it is kept."""

import secrets

from litestar.datastructures import MutableScopeHeaders
from litestar.types import ASGIApp, Message, Receive, Scope, Send

NONCE = "faregate_nonce"
PAGE_ID = "faregate_page_id"

_POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src 'self' blob:; "
    "media-src 'self' blob:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types htmx"
)
_ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # no-referrer makes browsers send `Origin: null` with our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def policy(nonce: str) -> str:
    """Write the Content-Security-Policy of one answer."""
    return _POLICY.format(nonce=nonce)


async def guard_refusals(message: Message, _: Scope) -> None:
    """Guard what is answered before the site's routes are reached, such as an unknown method."""
    if message["type"] == "http.response.start":
        headers = MutableScopeHeaders.from_message(message)
        if "content-security-policy" not in headers:
            _guard(headers, secrets.token_urlsafe(18))


def guarded_headers(app: ASGIApp) -> ASGIApp:
    """Give each answer a nonce and an id of its own, and the headers that keep it ours."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        nonce = secrets.token_urlsafe(18)
        scope["state"][NONCE] = nonce
        scope["state"][PAGE_ID] = f"page_{secrets.token_hex(8)}"

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _guard(MutableScopeHeaders.from_message(message), nonce)
            await send(message)

        await app(scope, receive, send_guarded)

    return serve


def _guard(headers: MutableScopeHeaders, nonce: str) -> None:
    headers["content-security-policy"] = policy(nonce)
    for name, value in _ALWAYS.items():
        headers[name] = value
    headers.setdefault("cache-control", "no-store")
