"""Prices as operators change them: each change is a new version, and stands in the audit log beside it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.catalog.codec import components_json, outcome_json
from gateway.catalog.diff import price_changes
from gateway.catalog.model import Model, Sold
from gateway.catalog.price_rules import price_problems
from gateway.catalog.store import lock_catalog, raise_revision
from gateway.catalog.versions import is_free
from gateway.db.catalog import price_cancellation, price_version
from gateway.errors import Unprocessable
from gateway.ledger.audit import Action, Actor, Changes, write_audit
from gateway.ledger.prices.conflict import PriceConflict
from gateway.ledger.prices.reading import (
    all_versions,
    in_force,
    named_list,
    named_model,
    newest,
    version,
    versions_of,
)
from gateway.ledger.prices.records import Draft, PriceRecord, Publication, Published
from gateway.ledger.transaction import transaction
from gateway.pricing.policy import OutcomePolicy

TOO_LATE_S = 2
"""A version that comes into force sooner than this is not called off: a gateway may have it already."""
LATEST = timedelta(days=5 * 366)
MOST_PRICES = 20_000


class PriceStore:
    """Publishes prices, schedules them, calls them off, and tells their history."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def publish(self, new: Publication, actor: Actor) -> Published:
        """Make a version, in force from now or from an instant on. Nobody has to be told: all gateways follow.

        Raises NotFound, Unprocessable for a draft that does not fit its model (`param` names the field), and
        PriceConflict where somebody else published since its author looked.
        """
        async with transaction(self._engine) as connection:
            return await publish_in(connection, new, actor, "schedule" if new.valid_from is not None else "publish")

    async def reinstate(
        self, version_id: int, actor: Actor, *, valid_from: datetime | None = None, base: int | None, reason: str = ""
    ) -> Published:
        """Publish once more what an old version said. Raises as `publish`."""
        async with transaction(self._engine) as connection:
            old = await version(connection, version_id)
            draft = Draft(rows=old.rows, minimum_nanos=old.minimum_nanos, outcome=old.outcome, free=old.free)
            new = Publication(
                model=old.model,
                draft=draft,
                price_list=old.price_list,
                valid_from=valid_from,
                base=base,
                reason=reason or f"as in version {old.id}",
            )
            return await publish_in(connection, new, actor, "reinstate")

    async def cancel(self, version_id: int, actor: Actor, *, reason: str = "") -> Published:
        """Call off a version before it comes into force. Raises NotFound or Unprocessable."""
        async with transaction(self._engine) as connection:
            await lock_catalog(connection)
            found = await version(connection, version_id)
            now = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
            if found.state != "scheduled" or found.valid_from <= now + timedelta(seconds=TOO_LATE_S):
                raise Unprocessable(
                    f"Version {version_id} is {found.state.replace('_', ' ')}, or will be in a moment: "
                    "only what is scheduled can be cancelled. Publish another version in its place.",
                    code="price_not_scheduled",
                    param="version",
                )
            await connection.execute(
                insert(price_cancellation).values(price_version_id=version_id, author=actor.name, reason=reason)
            )
            changes = {"version": (version_id, None), "valid_from": (found.valid_from, None), "reason": (None, reason)}
            return await _done(connection, actor, "cancel", version_id, changes)

    async def history(self, model: str, price_list: str | None = None) -> list[PriceRecord]:
        """Tell all versions of one price, the latest instant first. Raises NotFound."""
        async with transaction(self._engine) as connection:
            list_id = await named_list(connection, price_list)
            return await versions_of(connection, (await named_model(connection, model)).id, list_id)

    async def show(self, version_id: int) -> PriceRecord:
        """Show one version. Raises NotFound."""
        async with transaction(self._engine) as connection:
            return await version(connection, version_id)

    async def current(self, model: str | None = None) -> list[PriceRecord]:
        """Tell what is in force, and what is scheduled, of all models or of one: by model, list and instant."""
        async with transaction(self._engine) as connection:
            versions = await all_versions(connection, MOST_PRICES, model)
        records = [each for key in sorted(versions, key=_by_name) for each in reversed(versions[key])]
        return [each for each in records if each.state in ("in_force", "scheduled")]


def _by_name(key: tuple[str, str | None]) -> tuple[str, str]:
    return key[0], key[1] or ""


async def publish_in(connection: AsyncConnection, new: Publication, actor: Actor, verb: str) -> Published:
    """Make a version in a transaction of the caller's. Raises as `PriceStore.publish`."""
    await lock_catalog(connection)
    model = await named_model(connection, new.model)
    list_id = await named_list(connection, new.price_list)
    versions = await versions_of(connection, model.id, list_id)
    before = in_force(versions)
    _check_draft(model, new)
    _check_base(versions, new)
    outcome = new.draft.outcome or (before.outcome if before else model.outcome)
    _check_news(new, before, outcome)
    made = insert(price_version).values(
        model_id=model.id,
        price_list_id=list_id,
        components=components_json(new.draft.rows),
        minimum_nanos=new.draft.minimum_nanos,
        outcome=outcome_json(outcome),
        valid_from=await _instant(connection, new.valid_from),
        free=is_free(new.draft.sold),
        door=_door(actor),
        author=actor.name,
        reason=new.reason,
        source=actor.door,
    )
    number = (await connection.execute(made.returning(price_version.c.id))).scalar_one()
    return await _done(connection, actor, verb, number, _audited(new, before, outcome, number))


def _door(actor: Actor) -> str:
    return actor.door if actor.door in ("file", "dashboard") else "api"


def _check_draft(model: Model, new: Publication) -> None:
    problems = list(price_problems(model, new.draft.sold))
    if problems:
        first = problems[0]
        error = Unprocessable(
            "; ".join(f"{each.place}: expected {each.expected}, found {each.found}" for each in problems),
            code="price_misfit",
            param=first.place,
        )
        error.details = {
            "problems": [{"field": each.place, "expected": each.expected, "found": each.found} for each in problems]
        }
        raise error
    if is_free(new.draft.sold) and not new.draft.free:
        raise Unprocessable(
            "This price is zero. Say that it is free on purpose, or set an amount.", code="free_not_meant", param="free"
        )


def _check_base(versions: list[PriceRecord], new: Publication) -> None:
    last = newest(versions)
    if new.base is None or new.base == (last.id if last else 0):
        return
    base = next((each for each in versions if each.id == new.base), None)
    raise PriceConflict(last, base, new.draft)


def _check_news(new: Publication, before: PriceRecord | None, outcome: OutcomePolicy) -> None:
    if new.valid_from is not None:
        return
    same = before is not None and before.outcome == outcome
    if not price_changes(before.sold if before else Sold(), new.draft.sold) and (same or not new.draft.rows):
        raise Unprocessable("This is what it costs already.", code="price_unchanged", param="price")


async def _instant(connection: AsyncConnection, wanted: datetime | None) -> datetime:
    """Give the instant from which a version counts, on the clock of Postgres."""
    now: datetime = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
    if wanted is None:
        return now
    at = wanted.astimezone(UTC)
    if not now < at <= now + LATEST:
        raise Unprocessable(
            "A price comes into force at an instant in the future, within five years; leave it out for now.",
            code="instant_not_ahead",
            param="valid_from",
        )
    return at


def _audited(new: Publication, before: PriceRecord | None, outcome: OutcomePolicy, number: int) -> Changes:
    changes: dict[str, tuple[Any, Any]] = {
        change.field: (change.old, change.new)
        for change in price_changes(before.sold if before else Sold(), new.draft.sold)
    }
    if before is not None and before.outcome != outcome:
        changes["outcome"] = (outcome_json(before.outcome), outcome_json(outcome))
    changes["version"] = (before.id if before else None, number)
    for name, value in (
        ("price_list", new.price_list),
        ("valid_from", new.valid_from),
        ("reason", new.reason or None),
        ("free", is_free(new.draft.sold) or None),
    ):
        if value is not None:
            changes[name] = (None, value)
    return changes


async def _done(connection: AsyncConnection, actor: Actor, verb: str, number: int, changes: Changes) -> Published:
    """Write the audit row, let all gateways read the catalog again, and show the version as it stands."""
    price = await version(connection, number)
    action = Action(
        name=f"price.{verb}", object_kind="price", object_id=str(number), changes=_of(price) | dict(changes)
    )
    audit_id = await write_audit(connection, actor, action)
    return Published(price=price, revision=await raise_revision(connection), audit_id=audit_id)


def _of(price: PriceRecord) -> dict[str, tuple[Any, Any]]:
    return {"model": (price.model, price.model)}
