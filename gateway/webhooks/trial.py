"""Tells a receiver a test: signed like every webhook, and at once, so that whoever asks for it sees what comes back."""

import asyncio
import secrets
import time
from datetime import UTC, datetime

import httpx
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.ledger.audit import Action, Actor, write_audit
from gateway.ledger.transaction import transaction
from gateway.net.addresses import Allowed, UrlNotAllowed
from gateway.net.client import check_url, guarded_client
from gateway.webhooks.secrets import Secrets
from gateway.webhooks.signature import signed_headers

TYPE = "webhook.test"


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a test."""

    id: str
    status: int | None
    """None where there was no answer."""
    took_ms: int
    error: str
    audit_id: int = 0

    @property
    def well(self) -> bool:
        """Whether it arrived."""
        return not self.error


class Trials:
    """Sends tests."""

    def __init__(self, engine: AsyncEngine, allowed: Allowed, timeout_s: float) -> None:
        self._engine = engine
        self._secrets = Secrets(engine)
        self._allowed = allowed
        self._timeout_s = timeout_s

    async def send(self, account_id: int, url: str, *, by: Actor) -> Heard:
        """Tell a receiver a test in the name of an account.

        Raises UrlNotAllowed for what is no address, NotFound for an account that is none, and Unavailable.
        """
        address = str(check_url(url))
        event_id = f"evt_{secrets.token_hex(16)}-test"
        body = msgspec.json.encode(
            {
                "id": event_id,
                "type": TYPE,
                "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
                "data": {"message": "A test from the dashboard. Nothing happened to any request."},
            }
        )
        await self._secrets.show(account_id)
        signing = await self._secrets.valid(account_id)
        headers = signed_headers(signing, event_id, int(time.time()), body)
        heard = await self._post(address, headers, body, event_id)
        changes = {"url": (None, address), "answer": (None, heard.status or heard.error)}
        action = Action(name="webhook.test", object_kind="account", object_id=str(account_id), changes=changes)
        async with transaction(self._engine) as connection:
            return msgspec.structs.replace(heard, audit_id=await write_audit(connection, by, action))

    async def _post(self, url: str, headers: dict[str, str], body: bytes, event_id: str) -> Heard:
        headers = headers | {"content-type": "application/json", "user-agent": "faregate-webhooks"}
        began_s, status, error = time.monotonic(), None, ""
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                guarded_client(self._allowed, timeout_s=self._timeout_s, most_connections=1) as client,
                client.stream("POST", url, content=body, headers=headers) as answer,
            ):
                status = answer.status_code  # nothing of the body is read, however long it is
        except TimeoutError:
            error = "no answer in time"
        except UrlNotAllowed as refusal:
            error = refusal.code
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            error = type(fault).__name__  # its words may hold an address that was resolved
        if status is not None and not 200 <= status < 300:
            error = f"answered {status}"
        return Heard(id=event_id, status=status, took_ms=round((time.monotonic() - began_s) * 1000), error=error)
