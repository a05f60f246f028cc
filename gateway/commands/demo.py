"""The demo account: what lets a newcomer make the first call without reading anything."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.accounts import account, api_key
from gateway.errors import Conflict
from gateway.ledger.accounts import Accounts, NewAccount
from gateway.ledger.keys import Keys, NewKey, hash_of
from gateway.money import NANOS_PER_USD

NAME = "demo"
BALANCE_USD = 10


async def demo_key(engine: AsyncEngine, kept: str) -> str:
    """Answer a key of the demo account: the one that was kept while it is live, else a new one."""
    if kept and await _is_live(engine, kept):
        return kept
    issued = await Keys(engine).create(NewKey(account_id=await _account(engine), name=NAME))
    return issued.key


async def _is_live(engine: AsyncEngine, secret: str) -> bool:
    wanted = select(api_key.c.id).where(api_key.c.hash == hash_of(secret), api_key.c.revoked_at.is_(None))
    async with engine.connect() as connection:
        return (await connection.execute(wanted)).one_or_none() is not None


async def _account(engine: AsyncEngine) -> int:
    """Answer the demo account's id; it is made with its balance once, and never topped up by itself."""
    try:
        new = NewAccount(name=NAME, balance_nanos=BALANCE_USD * NANOS_PER_USD)
        return (await Accounts(engine).create(new)).id
    except Conflict:
        async with engine.connect() as connection:
            return int((await connection.execute(select(account.c.id).where(account.c.name == NAME))).scalar_one())
