"""The catalog in Postgres: read, compared and changed, one transaction at a time."""

import msgspec
from sqlalchemy import func, insert, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.catalog.codec import components_json, model_spec, pool_spec, read_components, read_model, read_pool
from gateway.catalog.diff import Change, diff
from gateway.catalog.model import Catalog, Pool
from gateway.db.catalog import model, pool, price_version, revision
from gateway.db.requests import open_request
from gateway.pricing.price import PriceComponent

LOCK = 0x6361746C6F67  # "catlog"
"""The advisory lock that serialises changes of the catalog."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What an apply did."""

    changes: tuple[Change, ...]
    revision: int


async def read_catalog(connection: AsyncConnection) -> Catalog:
    """Read what is called and sold now: models that are not withdrawn, in the order of their numbers."""
    rows = await connection.execute(select(model).where(model.c.withdrawn_at.is_(None)).order_by(model.c.id))
    models = {row.name: read_model(row.name, row.id, row.spec) for row in rows}
    prices = await _prices_in_force(connection)
    return Catalog(
        pools={name: one for name, one in (await _pools(connection)).items() if not one.withdrawn},
        models=models,
        prices={name: prices.get(one.id, ()) for name, one in models.items()},
    )


async def compare(engine: AsyncEngine, catalog: Catalog) -> tuple[Change, ...]:
    """Say what `apply` would change."""
    async with engine.connect() as connection:
        return diff(await read_catalog(connection), catalog)


async def apply(engine: AsyncEngine, catalog: Catalog, *, source: str) -> Applied:
    """Make the database say what `catalog` says: all of it, or nothing.

    Models that are missing are withdrawn and keep their numbers and prices. A model gets a new price
    version, valid from now, only where its components changed; `source` says who wrote it. Applies that
    run at once take turns. Nothing is written, and no revision raised, where nothing changes.
    """
    async with engine.begin() as connection:
        await connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        changes = diff(await read_catalog(connection), catalog)
        await _drop_drained_pools(connection)
        for change in changes:
            if change.kind == "pool":
                await _apply_pool(connection, change, catalog)
            else:
                await _apply_model(connection, change, catalog, source)
        return Applied(changes=changes, revision=await _revision(connection, raised=bool(changes)))


async def _pools(connection: AsyncConnection) -> dict[str, Pool]:
    rows = await connection.execute(select(pool).order_by(pool.c.name))
    return {row.name: read_pool(row.name, row.spec) for row in rows}


async def _prices_in_force(connection: AsyncConnection) -> dict[int, tuple[PriceComponent, ...]]:
    rows = await connection.execute(
        select(price_version.c.model_id, price_version.c.components)
        .ext(distinct_on(price_version.c.model_id))
        .where(price_version.c.valid_from <= func.clock_timestamp())
        .order_by(price_version.c.model_id, price_version.c.valid_from.desc(), price_version.c.id.desc())
    )
    return {row.model_id: read_components(row.components) for row in rows}


async def _apply_pool(connection: AsyncConnection, change: Change, catalog: Catalog) -> None:
    if change.action == "removed":
        gone = (await _pools(connection))[change.name]
        spec = pool_spec(msgspec.structs.replace(gone, withdrawn=True))
    else:
        spec = pool_spec(catalog.pools[change.name])
    row = upsert(pool).values(name=change.name, spec=spec)
    await connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"spec": row.excluded.spec}))


async def _apply_model(connection: AsyncConnection, change: Change, catalog: Catalog, source: str) -> None:
    if change.action == "removed":
        await connection.execute(update(model).where(model.c.name == change.name).values(withdrawn_at=func.now()))
        return
    row = upsert(model).values(name=change.name, spec=model_spec(catalog.models[change.name]), withdrawn_at=None)
    changed = {"spec": row.excluded.spec, "withdrawn_at": None}
    stored = row.on_conflict_do_update(index_elements=["name"], set_=changed).returning(model.c.id)
    number = (await connection.execute(stored)).scalar_one()
    components = catalog.prices.get(change.name, ())
    before = (await _prices_in_force(connection)).get(number, ())
    if set(before) != set(components):
        await connection.execute(
            insert(price_version).values(
                model_id=number,
                components=components_json(components),
                valid_from=func.clock_timestamp(),  # not now(): whoever waited for the lock comes later
                source=source,
            )
        )


async def _drop_drained_pools(connection: AsyncConnection) -> None:
    """Forget pools that an earlier apply withdrew and that no open request names."""
    used = select(literal_column("1")).where(open_request.c.pool == pool.c.name).exists()
    await connection.execute(pool.delete().where(pool.c.spec["withdrawn"].as_boolean(), ~used))


async def _revision(connection: AsyncConnection, *, raised: bool) -> int:
    number = revision.c["catalog"]
    if raised:
        done = await connection.execute(update(revision).values(catalog=number + 1).returning(number))
    else:
        done = await connection.execute(select(number))
    return int(done.scalar_one())
