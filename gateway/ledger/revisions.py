"""The revision of accounts and keys: how gateways notice what has changed."""

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.catalog import revision


async def next_keys_revision(connection: AsyncConnection) -> int:
    """Raise the revision of keys; the caller stamps it on the keys that it changes then, in the same transaction.

    The row of the revision stays locked until the commit, so revisions become visible in their order and
    a reader that has seen one has seen all before it. To be called before any key is locked: whoever
    holds a key never waits for the revision.
    """
    raised = update(revision).values(keys=revision.c["keys"] + 1).returning(revision.c["keys"])
    return int((await connection.execute(raised)).scalar_one())
