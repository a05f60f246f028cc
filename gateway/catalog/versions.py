"""Price versions in Postgres: which is in force, and who said it."""

import msgspec
from sqlalchemy import exists, func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.catalog.codec import read_components, read_outcome
from gateway.catalog.diff import Word, list_entry
from gateway.catalog.model import Sold
from gateway.db.catalog import model, price_cancellation, price_list, price_version
from gateway.pricing.policy import OutcomePolicy


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """What a version says."""

    sold: Sold
    outcome: OutcomePolicy
    id: int = 0


Versions = dict[tuple[int | None, int], InForce]
"""The versions in force, by price list (None for the list price) and model."""

NOT_CANCELLED = ~exists().where(price_cancellation.c.price_version_id == price_version.c.id)


def is_free(sold: Sold) -> bool:
    """Say whether a price has rows, and all of them and its minimum are zero."""
    return bool(sold.rows) and not sold.minimum_nanos and not any(row.picos for row in sold.rows)


async def versions_in_force(connection: AsyncConnection) -> Versions:
    """Read the versions in force now, those without rows among them."""
    outcome = func.coalesce(price_version.c.outcome, model.c.spec["outcome"]).label("outcome")
    columns = (
        price_version.c.id,
        price_version.c.model_id,
        price_version.c.price_list_id,
        price_version.c.components,
        price_version.c.minimum_nanos,
    )
    rows = await connection.execute(
        select(*columns, outcome)
        .join(model, model.c.id == price_version.c.model_id)
        .ext(distinct_on(price_version.c.model_id, price_version.c.price_list_id))
        .where(price_version.c.valid_from <= func.clock_timestamp(), NOT_CANCELLED)
        .order_by(
            price_version.c.model_id,
            price_version.c.price_list_id,
            price_version.c.valid_from.desc(),
            price_version.c.id.desc(),
        )
    )
    return {
        (row.price_list_id, row.model_id): InForce(
            sold=Sold(read_components(row.components), row.minimum_nanos),
            outcome=read_outcome(row.outcome),
            id=row.id,
        )
        for row in rows
    }


async def newest_version(connection: AsyncConnection) -> int:
    """Give the number of the newest version of any price; 0 for none."""
    return int((await connection.execute(select(func.coalesce(func.max(price_version.c.id), 0)))).scalar_one())


async def last_words(connection: AsyncConnection) -> dict[str, Word]:
    """Say who spoke last of each price, scheduled ones among them: by model, and `LIST: MODEL` for those in lists."""
    rows = await connection.execute(
        select(price_version, model.c.name.label("model"), price_list.c.name.label("list"))
        .join(model, model.c.id == price_version.c.model_id)
        .outerjoin(price_list, price_list.c.id == price_version.c.price_list_id)
        .ext(distinct_on(price_version.c.model_id, price_version.c.price_list_id))
        .where(NOT_CANCELLED)
        .order_by(price_version.c.model_id, price_version.c.price_list_id, price_version.c.id.desc())
    )
    return {
        row.model if row.list is None else list_entry(row.list, row.model): Word(
            version=row.id, door=row.door, author=row.author, at=row.created_at, reason=row.reason
        )
        for row in rows
    }
