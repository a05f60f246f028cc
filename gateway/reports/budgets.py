"""Which budgets are nearly spent: those of keys, in all and by period, and those of accounts."""

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.reading import reading

NEAR_PERCENT = 80

_FULLEST = text(
    """
    with budget as (
      select coalesce(nullif(name, ''), prefix) as name, 'key' as kind, id, budget_nanos as most, used_nanos as used
      from api_key where revoked_at is null and budget_nanos > 0
      union all
      select coalesce(a.name, nullif(k.name, ''), k.prefix), case l.owner_kind when 0 then 'account' else 'key' end,
             l.owner_id, l.limit_nanos, l.used_nanos
      from spending_limit l
      left join account a on l.owner_kind = 0 and a.id = l.owner_id
      left join api_key k on l.owner_kind = 1 and k.id = l.owner_id and k.revoked_at is null
      where l.limit_nanos > 0 and (l.period = 'total' or l.since >= date_trunc(l.period, now(), 'UTC'))
        and (a.id is not null or k.id is not null)
    )
    select name, kind, id, trunc(used::numeric * 100 / most)::int as percent, count(*) over () as many
    from budget where used::numeric * 100 >= most::numeric * :near
    order by percent desc, name limit 1
    """
)


class NearBudgets(msgspec.Struct, frozen=True, kw_only=True):
    """How many budgets are at 80% or more, and the fullest."""

    many: int = 0
    name: str = ""
    kind: str = ""
    id: int = 0
    percent: int = 0


async def near_budgets(engine: AsyncEngine) -> NearBudgets:
    """Read which budgets are nearly spent. Raises Unavailable."""
    async with reading(engine) as connection:
        row = (await connection.execute(_FULLEST, {"near": NEAR_PERCENT})).one_or_none()
    return NearBudgets() if row is None else NearBudgets(**row._mapping)
