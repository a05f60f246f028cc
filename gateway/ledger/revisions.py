"""The revision of accounts and keys: how gateways notice what has changed."""

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.accounts import api_key
from gateway.db.catalog import revision


async def raise_keys_revision(connection: AsyncConnection, changed: ColumnElement[bool]) -> None:
    """Raise the revision and stamp it on the changed keys, as the last step of a transaction.

    The row of the revision stays locked until the commit, so revisions become visible in their order and
    a reader that has seen one has seen all before it.
    """
    raised = update(revision).values(keys=revision.c["keys"] + 1).returning(revision.c["keys"])
    number = (await connection.execute(raised)).scalar_one()
    locked = select(api_key.c.id).where(changed).order_by(api_key.c.id).with_for_update()
    ids = (await connection.execute(locked)).scalars().all()
    await connection.execute(update(api_key).where(api_key.c.id.in_(ids)).values(revision=number))
