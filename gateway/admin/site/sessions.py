"""Sessions of operators and of key owners: on our side, by the hash of a token that the cookie alone holds.

A session is made anew at each sign-in, is over with its time or at sign-out, and that of a key's owner with the key.
"""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.visitor import Kind, Visitor
from gateway.db.operators import web_session
from gateway.flow.origin import origin
from gateway.ledger.audit import Action, write_audit
from gateway.ledger.keyring import Caller, Keyring
from gateway.ledger.transaction import transaction

LASTS: Mapping[Kind, timedelta] = {"operator": timedelta(hours=12), "owner": timedelta(days=7)}
IDLE: Mapping[Kind, timedelta] = {"operator": timedelta(hours=3), "owner": timedelta(days=2)}
TOUCHED_EVERY = timedelta(minutes=1)
"""A session that is used is marked so at most this often."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A new session, and the token that its cookie gets."""

    token: str
    visitor: Visitor


class WebSessions:
    """Opens, finds and ends sessions."""

    def __init__(self, engine: AsyncEngine, keyring: Keyring) -> None:
        self._engine = engine
        self._keyring = keyring

    async def open_operator(self, name: str, role: str, page_id: str) -> Opened:
        """Begin the session of an operator. The sign-in stands in the audit log."""
        token, row = _fresh("operator", name, role)
        opened = Opened(token=token, visitor=_visitor(row))
        actor = msgspec.structs.replace(opened.visitor.actor, request_id=page_id)
        async with transaction(self._engine) as connection:
            await connection.execute(insert(web_session).values(row))
            action = Action(name="session.open", object_kind="session", object_id=row["token_hash"].hex()[:12])
            await write_audit(connection, actor, action)
        return opened

    async def open_owner(self, caller: Caller) -> Opened:
        """Begin the session of an API key's owner."""
        token, row = _fresh("owner", caller.key_name or f"key {caller.key_id}", "key")
        row["api_key_id"] = caller.key_id
        async with transaction(self._engine) as connection:
            await connection.execute(insert(web_session).values(row))
        return Opened(token=token, visitor=_visitor(row, caller))

    async def find(self, kind: Kind, token: str) -> Visitor | None:
        """Find who holds a token. None where it is unknown, over, idle for too long, or its key is not live."""
        now = datetime.now(UTC)
        wanted = select(web_session).where(
            web_session.c.token_hash == _hash(token),
            web_session.c.kind == kind,
            web_session.c.ended_at.is_(None),
            web_session.c.expires_at > now,
            web_session.c.last_seen_at > now - IDLE[kind],
        )
        async with transaction(self._engine) as connection:
            row = (await connection.execute(wanted)).mappings().one_or_none()
            if row is None:
                return None
            if now - row["last_seen_at"] > TOUCHED_EVERY:
                seen = update(web_session).where(web_session.c.token_hash == row["token_hash"])
                await connection.execute(seen.values(last_seen_at=now))
        if kind == "operator":
            return _visitor(row)
        caller = self._keyring.find_key(row["api_key_id"])
        if caller is None or not caller.permits.allow_address(origin().address()):
            return None
        return _visitor(row, caller)

    async def end(self, visitor: Visitor) -> None:
        """End a session for good."""
        mine = update(web_session).where(
            web_session.c.token_hash == visitor.token_hash, web_session.c.ended_at.is_(None)
        )
        async with transaction(self._engine) as connection:
            await connection.execute(mine.values(ended_at=func.now()))
            if visitor.kind == "operator":
                action = Action(name="session.end", object_kind="session", object_id=visitor.token_hash.hex()[:12])
                await write_audit(connection, visitor.actor, action)


def _fresh(kind: Kind, name: str, role: str) -> tuple[str, dict[str, Any]]:
    token, now = secrets.token_urlsafe(32), datetime.now(UTC)
    row = {
        "token_hash": _hash(token),
        "kind": kind,
        "actor": name,
        "role": role,
        "api_key_id": None,
        "csrf": secrets.token_urlsafe(24),
        "created_at": now,
        "last_seen_at": now,
        "expires_at": now + LASTS[kind],
    }
    return token, row


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _visitor(row: Mapping[str, Any] | RowMapping, caller: Caller | None = None) -> Visitor:
    return Visitor(
        kind=row["kind"],
        name=row["actor"],
        role=row["role"],
        csrf=row["csrf"],
        token_hash=row["token_hash"],
        api_key_id=caller.key_id if caller else 0,
        account_id=caller.account_id if caller else 0,
    )
