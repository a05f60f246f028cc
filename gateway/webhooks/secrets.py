"""What an account's webhooks are signed with: made when first needed, and replaced without a gap."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.accounts import account
from gateway.db.webhooks import webhook_secret
from gateway.errors import NotFound
from gateway.ledger.audit import Action, Actor, write_audit
from gateway.ledger.transaction import transaction
from gateway.webhooks.signature import secret_text

SECRET_BYTES = 32
OVERLAP = timedelta(hours=24)
"""How long the secret before still signs beside a new one."""


class SigningSecret(msgspec.Struct, frozen=True, kw_only=True):
    """The secret of an account as its owner sees it."""

    secret: str
    """`whsec_` and base64, as the libraries of the Standard Webhooks specification take it."""
    created_at: datetime
    previous_until: datetime | None = None
    """Until when the secret before it signs too; null where there is none."""


class Secrets:
    """Keeps the signing secrets of all accounts."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def show(self, account_id: int) -> SigningSecret:
        """Show the secret of an account; the first look makes it. Raises NotFound for an account that is none."""
        async with transaction(self._engine) as connection:
            return await _shown(connection, account_id)

    async def rotate(self, account_id: int, *, by: Actor | None = None) -> SigningSecret:
        """Make a new secret; the one before signs for another 24 hours. Raises NotFound."""
        action = Action(name="webhook_secret.rotate", object_kind="account", object_id=str(account_id))
        current = (webhook_secret.c.account_id == account_id, webhook_secret.c.expires_at.is_(None))
        async with transaction(self._engine) as connection:
            await _shown(connection, account_id)
            await connection.execute(update(webhook_secret).where(*current).values(expires_at=func.now() + OVERLAP))
            await write_audit(connection, by, action)
            return await _shown(connection, account_id)

    async def valid(self, account_id: int) -> Sequence[bytes]:
        """Give what signs now, the newest first; made where there is none yet."""
        wanted = select(webhook_secret.c.secret).where(*_valid(account_id)).order_by(webhook_secret.c.id.desc())
        async with transaction(self._engine) as connection:
            found = (await connection.execute(wanted)).scalars().all()
            if not found:
                await _shown(connection, account_id)
                found = (await connection.execute(wanted)).scalars().all()
            return found

    async def prune(self) -> None:
        """Forget secrets that have expired."""
        async with transaction(self._engine) as connection:
            await connection.execute(webhook_secret.delete().where(webhook_secret.c.expires_at <= func.now()))


def _valid(account_id: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    live = or_(webhook_secret.c.expires_at.is_(None), webhook_secret.c.expires_at > func.now())
    return webhook_secret.c.account_id == account_id, live


async def _shown(connection: AsyncConnection, account_id: int) -> SigningSecret:
    known = select(account.c.id).where(account.c.id == account_id)
    if (await connection.execute(known)).one_or_none() is None:
        raise NotFound("There is no such account.", code="account_not_found", param="account_id")
    made = insert(webhook_secret).values(account_id=account_id, secret=secrets.token_bytes(SECRET_BYTES))
    await connection.execute(
        made.on_conflict_do_nothing(index_elements=["account_id"], index_where=webhook_secret.c.expires_at.is_(None))
    )
    wanted = select(webhook_secret).where(*_valid(account_id)).order_by(webhook_secret.c.id.desc()).limit(2)
    rows = (await connection.execute(wanted)).all()
    return SigningSecret(
        secret=secret_text(rows[0].secret),
        created_at=rows[0].created_at,
        previous_until=rows[1].expires_at if len(rows) > 1 else None,
    )
