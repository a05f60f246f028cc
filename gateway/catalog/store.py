"""The catalog in Postgres: read, compared and changed, one transaction at a time."""

import msgspec
from sqlalchemy import func, insert, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.catalog.codec import (
    components_json,
    model_spec,
    outcome_json,
    pool_spec,
    read_model,
    read_outcome,
    read_pool,
    read_upstream,
    upstream_spec,
)
from gateway.catalog.diff import Change, diff, diff_text, price_changes
from gateway.catalog.model import Catalog, Model, Pool, Sold, Upstream
from gateway.catalog.versions import InForce, Versions, is_free, last_words, newest_version, versions_in_force
from gateway.db.catalog import model, pool, price_list, price_version, revision, upstream
from gateway.db.requests import open_request, request_way
from gateway.pricing.policy import OutcomePolicy

LOCK = 0x6361746C6F67  # "catlog"
"""The advisory lock that serialises changes of the catalog."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What an apply did."""

    changes: tuple[Change, ...]
    revision: int


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """Who applies a file, and what the price versions that it makes will say of it."""

    source: str
    author: str = ""
    reason: str = ""


class PricedElsewhere(Exception):
    """The file would overwrite prices that came through another door since it last said them. Nothing was changed."""

    def __init__(self, changes: tuple[Change, ...]) -> None:
        self.changes = changes
        super().__init__("prices came through another door since this file last said them:\n" + diff_text(changes))


async def read_catalog(connection: AsyncConnection) -> Catalog:
    """Read what is called and sold now: models that are not withdrawn, in the order of their numbers."""
    rows = await connection.execute(select(model).where(model.c.withdrawn_at.is_(None)).order_by(model.c.id))
    versions = await versions_in_force(connection)
    models = {row.name: _as_sold(read_model(row.name, row.id, row.spec), versions) for row in rows}
    sold = {name: versions[None, one.id].sold for name, one in models.items() if (None, one.id) in versions}
    return Catalog(
        pools={name: one for name, one in (await _pools(connection)).items() if not one.withdrawn},
        upstreams={name: one for name, one in (await _upstreams(connection)).items() if not one.withdrawn},
        models=models,
        prices={name: sold[name].rows if name in sold else () for name in models},
        minimums={name: one.minimum_nanos for name, one in sold.items() if one.minimum_nanos},
        price_lists=await _price_lists(connection, models, versions) or None,
        prices_as_of=await newest_version(connection),
    )


async def compare(engine: AsyncEngine, catalog: Catalog) -> tuple[Change, ...]:
    """Say what `apply` would change, and who said otherwise where a price came through another door."""
    async with engine.connect() as connection:
        return await _changes(connection, catalog)


async def apply(engine: AsyncEngine, catalog: Catalog, *, source: str, overwrite: bool = True) -> Applied:
    """Make the database say what `catalog` says, in a transaction of its own, by nobody in particular."""
    async with engine.begin() as connection:
        return await apply_in(connection, catalog, Signature(source=source), overwrite=overwrite)


async def apply_in(connection: AsyncConnection, catalog: Catalog, by: Signature, *, overwrite: bool) -> Applied:
    """Make the database say what `catalog` says: all of it, or nothing. For the caller's transaction.

    Models that are missing are withdrawn and keep their numbers and prices. A model gets a new price
    version, valid from now, only where its components or its outcome policy changed. Applies that run at once take
    turns. Nothing is written, and no revision raised, where nothing changes. Raises PricedElsewhere where it would
    overwrite a price that came through another door, unless that is meant.
    """
    await lock_catalog(connection)
    changes = await _changes(connection, catalog)
    kept = tuple(change for change in changes if change.last and change.last.version > catalog.prices_as_of)
    if kept and not overwrite:
        raise PricedElsewhere(kept)
    await _drop_drained(connection)
    versions = await versions_in_force(connection)
    for change in changes:
        if change.kind == "pool":
            await _apply_pool(connection, change, catalog)
        elif change.kind == "upstream":
            await _apply_upstream(connection, change, catalog)
        elif change.kind == "model":
            await _apply_model(connection, change, catalog, versions, by)
    if any(change.kind == "price_list" for change in changes):
        await _apply_lists(connection, catalog, versions, by)
    return Applied(changes=changes, revision=await raise_revision(connection, raised=bool(changes)))


async def lock_catalog(connection: AsyncConnection) -> None:
    """Wait for the turn of this transaction: whoever changes the catalog does so alone."""
    await connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": LOCK})


async def _changes(connection: AsyncConnection, catalog: Catalog) -> tuple[Change, ...]:
    words = await last_words(connection)
    changes = []
    for change in diff(await read_catalog(connection), catalog):
        word = words.get(change.name) if change.kind in ("model", "price_list") and change.reprices else None
        known = word is not None and word.door != "file" and change.action != "removed"
        removed = word is not None and word.door != "file" and change.kind == "price_list"
        changes.append(msgspec.structs.replace(change, last=word) if known or removed else change)
    return tuple(changes)


def _as_sold(one: Model, versions: Versions) -> Model:
    """Give a model with the outcome policy that is in force, which a price version may have changed."""
    version = versions.get((None, one.id))
    return one if version is None else msgspec.structs.replace(one, outcome=version.outcome)


async def _price_lists(
    connection: AsyncConnection, models: dict[str, Model], versions: Versions
) -> dict[str, dict[str, Sold]]:
    lists: dict[str, dict[str, Sold]] = {}
    for row in await connection.execute(select(price_list).order_by(price_list.c.name)):
        sold = {name: versions[row.id, one.id].sold for name, one in models.items() if (row.id, one.id) in versions}
        lists[row.name] = {name: one for name, one in sold.items() if one.rows}
    return lists


async def _pools(connection: AsyncConnection) -> dict[str, Pool]:
    rows = await connection.execute(select(pool).order_by(pool.c.name))
    return {row.name: read_pool(row.name, row.spec) for row in rows}


async def _upstreams(connection: AsyncConnection) -> dict[str, Upstream]:
    rows = await connection.execute(select(upstream).order_by(upstream.c.name))
    return {row.name: read_upstream(row.name, row.spec) for row in rows}


async def _apply_pool(connection: AsyncConnection, change: Change, catalog: Catalog) -> None:
    if change.action == "removed":
        gone = (await _pools(connection))[change.name]
        spec = pool_spec(msgspec.structs.replace(gone, withdrawn=True))
    else:
        spec = pool_spec(catalog.pools[change.name])
    row = upsert(pool).values(name=change.name, spec=spec)
    await connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"spec": row.excluded.spec}))


async def _apply_upstream(connection: AsyncConnection, change: Change, catalog: Catalog) -> None:
    if change.action == "removed":
        gone = (await _upstreams(connection))[change.name]
        spec = upstream_spec(msgspec.structs.replace(gone, withdrawn=True))
    else:
        spec = upstream_spec(catalog.upstreams[change.name])
    row = upsert(upstream).values(name=change.name, spec=spec)
    await connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"spec": row.excluded.spec}))


async def _apply_model(
    connection: AsyncConnection, change: Change, catalog: Catalog, versions: Versions, by: Signature
) -> None:
    if change.action == "removed":
        await connection.execute(update(model).where(model.c.name == change.name).values(withdrawn_at=func.now()))
        return
    row = upsert(model).values(name=change.name, spec=model_spec(catalog.models[change.name]), withdrawn_at=None)
    changed = {"spec": row.excluded.spec, "withdrawn_at": None}
    stored = row.on_conflict_do_update(index_elements=["name"], set_=changed).returning(model.c.id)
    number = (await connection.execute(stored)).scalar_one()
    sold, outcome = catalog.sold(change.name), catalog.models[change.name].outcome
    before = versions.get((None, number), InForce(sold=Sold(), outcome=outcome))
    if price_changes(before.sold, sold) or (sold.rows and before.outcome != outcome):
        await _insert(connection, number, None, sold, outcome, by)


async def _apply_lists(connection: AsyncConnection, catalog: Catalog, versions: Versions, by: Signature) -> None:
    """Write the price lists: each model whose price there changes gets a version; one that is gone an empty one."""
    numbers = {row.name: row for row in await connection.execute(select(model.c.name, model.c.id, model.c.spec))}
    names = {number: name for name, number in ((row.name, row.id) for row in numbers.values())}
    known = {row.name: row.id for row in await connection.execute(select(price_list.c.name, price_list.c.id))}
    wanted = catalog.price_lists or {}
    for name in {**known, **wanted}:
        number = known.get(name)
        if number is None:
            made = insert(price_list).values(name=name).returning(price_list.c.id)
            number = (await connection.execute(made)).scalar_one()
        sold = {numbers[each].id: one for each, one in wanted.get(name, {}).items()}
        before = {one: version.sold for (of, one), version in versions.items() if of == number}
        for each in {**before, **sold}:
            after = sold.get(each, Sold())
            if price_changes(before.get(each, Sold()), after):
                policy = read_outcome(numbers[names[each]].spec.get("outcome"))
                await _insert(connection, each, number, after, policy, by)


async def _insert(
    connection: AsyncConnection,
    number: int,
    list_id: int | None,
    sold: Sold,
    outcome: OutcomePolicy,
    by: Signature,
) -> None:
    await connection.execute(
        insert(price_version).values(
            model_id=number,
            price_list_id=list_id,
            components=components_json(sold.rows),
            minimum_nanos=sold.minimum_nanos,
            outcome=outcome_json(outcome),
            valid_from=func.clock_timestamp(),  # not now(): whoever waited for the lock comes later
            free=is_free(sold),
            door="file",
            author=by.author,
            reason=by.reason,
            source=by.source,
        )
    )


async def _drop_drained(connection: AsyncConnection) -> None:
    """Forget pools and upstreams that an earlier apply withdrew and that no open request can need.

    A request of several ways may yet go on in any of them.
    """
    moving = select(literal_column("1")).select_from(request_way).exists()
    for table, name in ((upstream, upstream.c.spec["pool"].as_string()), (pool, pool.c.name)):
        used = select(literal_column("1")).where(open_request.c.pool == name).exists()
        await connection.execute(table.delete().where(table.c.spec["withdrawn"].as_boolean(), ~used, ~moving))


async def raise_revision(connection: AsyncConnection, *, raised: bool = True) -> int:
    """Raise the revision of the catalog, for every gateway to read it again; answers what it is then."""
    number = revision.c["catalog"]
    if raised:
        done = await connection.execute(update(revision).values(catalog=number + 1).returning(number))
    else:
        done = await connection.execute(select(number))
    return int(done.scalar_one())
