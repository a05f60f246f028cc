"""Where a text that somebody typed leads: the account, the key or the model that it names."""

from urllib.parse import quote

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.reports.asking import page_session

_QUERY = """select path, name from (
    select 0 as rank, '/admin/accounts/' || id as path, name, id from account where lower(name) = lower($1)
    union all
    select 1, '/admin/keys/' || id, name, id from api_key where lower(name) = lower($1)
    union all
    select 2, '/admin/models/', name, id from model where lower(name) = lower($1)
    union all
    (select 3, '/admin/accounts/' || id, name, id from account where starts_with(lower(name), lower($1)) limit 5)
    union all
    (select 4, '/admin/keys/' || id, name, id from api_key where starts_with(lower(name), lower($1)) limit 5)
  ) found order by rank, id limit 1"""


async def find_place(engine: AsyncEngine, text: str) -> str:
    """Give the page of the account, key or model of this name, else of the first that begins so; empty for none."""
    if not text.strip():
        return ""
    async with page_session(engine) as session:
        found = await session.fetchrow(_QUERY, text.strip()[:200])
    if found is None:
        return ""
    path: str = found["path"]
    return path + quote(found["name"], safe="") if path.endswith("/") else path
