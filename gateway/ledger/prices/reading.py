"""Price versions as they lie in Postgres, with what became of each: past, in force, scheduled or cancelled."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.catalog.codec import read_components, read_model, read_outcome
from gateway.catalog.model import Model
from gateway.db.catalog import model, price_cancellation, price_list, price_version
from gateway.errors import NotFound
from gateway.ledger.prices.records import Cancelled, PriceRecord, PriceState

MOST_VERSIONS = 5_000
"""The most versions of one price that a history shows."""


def _versions() -> Select[Any]:
    return (
        select(
            price_version,
            func.coalesce(price_version.c.outcome, model.c.spec["outcome"]).label("policy"),
            model.c.name.label("model"),
            price_list.c.name.label("price_list"),
            price_cancellation.c.cancelled_at,
            price_cancellation.c.author.label("cancelled_by"),
            price_cancellation.c.reason.label("cancelled_for"),
            func.clock_timestamp().label("now"),
        )
        .join(model, model.c.id == price_version.c.model_id)
        .outerjoin(price_list, price_list.c.id == price_version.c.price_list_id)
        .outerjoin(price_cancellation, price_cancellation.c.price_version_id == price_version.c.id)
        .order_by(price_version.c.valid_from.desc(), price_version.c.id.desc())
    )


async def versions_of(
    connection: AsyncConnection, model_id: int, price_list_id: int | None, most: int = MOST_VERSIONS
) -> list[PriceRecord]:
    """Read the versions of one price, the latest instant first."""
    wanted = _versions().where(
        price_version.c.model_id == model_id, price_version.c.price_list_id.is_not_distinct_from(price_list_id)
    )
    return _records((await connection.execute(wanted.limit(most))).all())


async def all_versions(
    connection: AsyncConnection, most: int, name: str | None = None
) -> dict[tuple[str, str | None], list[PriceRecord]]:
    """Read the versions of all prices of models that are not withdrawn, or of one of them, by model and list."""
    wanted = _versions().where(model.c.withdrawn_at.is_(None)).limit(most)
    if name is not None:
        wanted = wanted.where(model.c.name == name)
    found: dict[tuple[str, str | None], list[Row[Any]]] = {}
    for row in await connection.execute(wanted):
        found.setdefault((row.model, row.price_list), []).append(row)
    return {key: _records(rows) for key, rows in found.items()}


async def version(connection: AsyncConnection, version_id: int) -> PriceRecord:
    """Read one version. Raises NotFound."""
    row = (
        await connection.execute(
            select(price_version.c.model_id, price_version.c.price_list_id).where(price_version.c.id == version_id)
        )
    ).one_or_none()
    found = await versions_of(connection, row.model_id, row.price_list_id) if row is not None else []
    for each in found:
        if each.id == version_id:
            return each
    raise NotFound("There is no such price version.", code="price_not_found", param="version")


async def named_model(connection: AsyncConnection, name: str) -> Model:
    """Read a model that is not withdrawn. Raises NotFound."""
    wanted = select(model).where(model.c.name == name, model.c.withdrawn_at.is_(None))
    row = (await connection.execute(wanted)).one_or_none()
    if row is None:
        raise NotFound("There is no such model.", code="model_not_found", param="model")
    return read_model(row.name, row.id, row.spec)


async def named_list(connection: AsyncConnection, name: str | None) -> int | None:
    """Find a price list by its name; None is the list price. Raises NotFound."""
    if name is None:
        return None
    found = (await connection.execute(select(price_list.c.id).where(price_list.c.name == name))).scalar_one_or_none()
    if found is None:
        raise NotFound("There is no such price list.", code="price_list_not_found", param="price_list")
    return int(found)


def in_force(versions: Iterable[PriceRecord]) -> PriceRecord | None:
    """Give the version in force; None for none."""
    return next((each for each in versions if each.state == "in_force"), None)


def newest(versions: Iterable[PriceRecord]) -> PriceRecord | None:
    """Give the version that was made last, of those that were not cancelled."""
    standing = [each for each in versions if each.cancelled is None]
    return max(standing, key=lambda each: each.id, default=None)


def _records(rows: Sequence[Row[Any]]) -> list[PriceRecord]:
    """Tell what became of each version, of rows in which the latest instant comes first."""
    records: list[PriceRecord] = []
    until: datetime | None = None
    found = False
    for row in rows:
        state: PriceState
        if row.cancelled_at is not None:
            state = "cancelled"
        elif row.valid_from > row.now:
            state = "scheduled"
        else:
            state = "past" if found else "in_force"
            found = True
        records.append(_record(row, state, until if row.cancelled_at is None else None))
        if row.cancelled_at is None:
            until = row.valid_from
    return records


def _record(row: Row[Any], state: PriceState, until: datetime | None) -> PriceRecord:
    cancelled = None
    if row.cancelled_at is not None:
        cancelled = Cancelled(at=row.cancelled_at, author=row.cancelled_by, reason=row.cancelled_for)
    return PriceRecord(
        id=row.id,
        model=row.model,
        model_id=row.model_id,
        price_list=row.price_list,
        price_list_id=row.price_list_id,
        rows=read_components(row.components),
        minimum_nanos=row.minimum_nanos,
        outcome=read_outcome(row.policy),
        free=row.free,
        state=state,
        valid_from=row.valid_from,
        until=until,
        created_at=row.created_at,
        door=row.door,
        author=row.author,
        reason=row.reason,
        source=row.source,
        cancelled=cancelled,
    )
