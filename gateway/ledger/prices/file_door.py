"""The door of the file: what `faregate catalog apply` and `faregate up` change, with their rows in the audit log."""

import pwd
from os import getuid

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.catalog.diff import Change, list_entry
from gateway.catalog.model import Catalog, Model, Sold
from gateway.catalog.store import Applied, PricedElsewhere, Signature, apply_in, read_catalog
from gateway.ledger.audit import Action, Actor, Changes, write_audit

log = structlog.get_logger()


def file_actor() -> Actor:
    """Name whoever runs this process, by the name of their account on the machine."""
    try:
        name = pwd.getpwuid(getuid()).pw_name
    except KeyError:
        name = str(getuid())
    return Actor(name=name, role="owner", door="file")


async def apply_file(
    engine: AsyncEngine,
    catalog: Catalog,
    actor: Actor,
    *,
    source: str = "file",
    reason: str = "",
    overwrite: bool = False,
) -> Applied:
    """Make the database say what a file says: all of it, or nothing.

    Raises PricedElsewhere where that would overwrite prices that came through another door, unless it is meant.
    """
    async with engine.begin() as connection:
        return await _apply(
            connection, catalog, actor, Signature(source=source, author=actor.name, reason=reason), overwrite
        )


async def apply_at_start(engine: AsyncEngine, catalog: Catalog, actor: Actor, *, source: str) -> Applied:
    """Apply a file when a system starts: prices that came through another door since are kept, and it is said."""
    try:
        return await apply_file(engine, catalog, actor, source=source)
    except PricedElsewhere as elsewhere:
        kept = elsewhere.changes
        log.warning("catalog.prices_kept", prices=[change.name for change in kept])
    async with engine.connect() as connection:
        current = await read_catalog(connection)
    return await apply_file(engine, keeping(catalog, current, kept), actor, source=source, overwrite=True)


def keeping(catalog: Catalog, current: Catalog, kept: tuple[Change, ...]) -> Catalog:
    """Give a catalog with the prices of some models, and of some in lists, as they are now."""
    names = {change.name for change in kept}
    models: dict[str, Model] = dict(catalog.models)
    prices, minimums = dict(catalog.prices), dict(catalog.minimums)
    for name in names & models.keys() & current.models.keys():
        sold = current.sold(name)
        models[name] = msgspec.structs.replace(models[name], outcome=current.models[name].outcome)
        prices[name], minimums[name] = sold.rows, sold.minimum_nanos
    lists = None if catalog.price_lists is None else {name: dict(sold) for name, sold in catalog.price_lists.items()}
    for price_list, sold_there in (current.price_lists or {}).items() if lists is not None else ():
        for model in {*sold_there, *catalog.models}:
            if lists is not None and list_entry(price_list, model) in names:
                lists.setdefault(price_list, {})[model] = sold_there.get(model, Sold())
    minimums = {name: nanos for name, nanos in minimums.items() if nanos}
    return msgspec.structs.replace(catalog, models=models, prices=prices, minimums=minimums, price_lists=lists)


async def _apply(
    connection: AsyncConnection, catalog: Catalog, actor: Actor, by: Signature, overwrite: bool
) -> Applied:
    done = await apply_in(connection, catalog, by, overwrite=overwrite)
    for change in done.changes:
        action = Action(
            name=f"{change.kind}.{change.action}",
            object_kind=change.kind,
            object_id=change.name,
            changes=_changes(change),
        )
        await write_audit(connection, actor, action)
    return done


def _changes(change: Change) -> Changes:
    return {each.field: (each.old, each.new) for each in (*change.price, *change.fields)}
