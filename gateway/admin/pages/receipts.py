"""The audit entry of a change that this very call has made, for the line that tells of it."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.view import View
from gateway.db.operators import audit
from gateway.ledger.transaction import transaction


async def receipt(view: View, engine: AsyncEngine, kind: str, object_id: object) -> int:
    """Find the audit entry that this call wrote about an object; 0 where nothing was changed."""
    wanted = (
        select(audit.c.id)
        .where(audit.c.object_kind == kind, audit.c.object_id == str(object_id), audit.c.request_id == view.page_id)
        .order_by(audit.c.id.desc())
        .limit(1)
    )
    async with transaction(engine) as connection:
        return (await connection.execute(wanted)).scalar_one_or_none() or 0
