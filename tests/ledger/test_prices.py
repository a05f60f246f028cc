"""Prices as operators change them: versions, schedules, conflicts, lists, and two doors to the same versions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.export import export
from gateway.catalog.load import load
from gateway.catalog.model import Catalog, Parameter, PriceVersion, Sold
from gateway.catalog.snapshot import SnapshotSource
from gateway.catalog.store import PricedElsewhere, Signature, apply, apply_in, compare, read_catalog
from gateway.db.operators import audit
from gateway.db.session import slow_engine
from gateway.errors import Conflict, NotFound, Unprocessable
from gateway.ledger.accounts import Accounts, NewAccount
from gateway.ledger.audit import Actor
from gateway.ledger.prices import file_door
from gateway.ledger.prices.conflict import PriceConflict
from gateway.ledger.prices.lists import PriceLists
from gateway.ledger.prices.records import Draft, PriceRecord, Publication
from gateway.ledger.prices.store import PriceStore
from gateway.money import parse_price, parse_usd
from gateway.pricing.conditions import Condition
from gateway.pricing.price import PriceComponent
from gateway.queues.revisions import MemoryRevisions, gateways_at
from tests.catalog.conftest import a_catalog, a_model, per_request

ANN = Actor(name="ann@example.org", role="billing", door="dashboard")
QUALITY = Parameter(type="string", choices=("low", "high"), default="low", priced=True)


def draft(usd: str, **fields: object) -> Draft:
    return Draft(rows=per_request(usd), **fields)  # type: ignore[arg-type]


def publication(usd: str, **fields: object) -> Publication:
    return Publication(**{"model": "m", "draft": draft(usd), **fields})  # type: ignore[arg-type]


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    made = slow_engine(database_url)
    await apply(
        made, a_catalog(a_model(parameters={"quality": QUALITY}, tasks=("text-to-image",)), usd="0.001"), source="file"
    )
    yield made
    await made.dispose()


@pytest.fixture
def store(engine: AsyncEngine) -> PriceStore:
    return PriceStore(engine)


async def sold(engine: AsyncEngine, price_list: str | None = None) -> PriceVersion | None:
    """Read what a gateway would: the price of m in force."""
    source = SnapshotSource(engine)
    await source.refresh()
    snapshot = source.snapshot()
    lists = {each.name: each.id for each in await PriceLists(engine).list()}
    return snapshot.price_for(snapshot.models["m"], lists[price_list] if price_list else None)


async def actions(engine: AsyncEngine) -> list[str]:
    async with engine.connect() as connection:
        return list((await connection.execute(select(audit.c.action).order_by(audit.c.id))).scalars())


async def test_a_price_that_is_published_is_in_force_and_in_the_audit_log(
    engine: AsyncEngine, store: PriceStore
) -> None:
    done = await store.publish(publication("0.002", reason="dearer"), ANN)
    assert (done.price.state, done.price.author, done.price.door) == ("in_force", "ann@example.org", "dashboard")
    price = await sold(engine)
    assert price is not None
    assert (price.id, price.components) == (done.price.id, per_request("0.002"))
    async with engine.connect() as connection:
        row = (await connection.execute(select(audit))).one()
    assert (row.id, row.action, row.actor) == (done.audit_id, "price.publish", "ann@example.org")
    assert row.changes["price per request"] == ["$0.001", "$0.002"]
    assert row.changes["reason"] == [None, "dearer"]
    old = (await store.history("m"))[-1]
    assert (old.state, old.until, old.door) == ("past", done.price.valid_from, "file")


async def test_all_gateways_hear_of_it_without_being_told(engine: AsyncEngine, store: PriceStore) -> None:
    revisions = MemoryRevisions()
    sources = {name: SnapshotSource(engine, every_s=0.1) for name in ("first", "second")}
    for name, source in sources.items():
        source.heard = partial(revisions.report, name)
    stopping = asyncio.Event()
    following = [asyncio.create_task(source.run(stopping)) for source in sources.values()]
    try:
        done = await store.publish(publication("0.002"), ANN)
        async with asyncio.timeout(30):
            while (arrival := await gateways_at(revisions, done.revision)).having < 2:
                await asyncio.sleep(0.02)
        assert arrival.last_at is not None
        prices = [source.snapshot().models["m"].price for source in sources.values()]
        assert [price.id for price in prices if price] == [done.price.id] * 2
    finally:
        stopping.set()
        await asyncio.gather(*following)


async def test_a_scheduled_price_comes_into_force_by_itself(engine: AsyncEngine, store: PriceStore) -> None:
    source = SnapshotSource(engine)
    for usd, ahead_s in (("0.002", 1.5), ("0.003", 20.0), ("0.004", 60.0)):
        before, at = await sold(engine), datetime.now(UTC) + timedelta(seconds=ahead_s)
        with suppress(Unprocessable):  # the machine stalled, and the instant was over: once more, with a later one
            done = await store.publish(publication(usd, valid_from=at), ANN)
            await source.refresh()
            price = source.snapshot().models["m"].price
            if await clock(engine) < at:
                break
    assert (done.price.state, price) == ("scheduled", before)
    async with asyncio.timeout(120):
        while (price := source.snapshot().models["m"].price) is None or price.id != done.price.id:
            await asyncio.sleep(0.05)
            await source.refresh()
    assert await clock(engine) >= at
    assert [each.state for each in await store.history("m")][:2] == ["in_force", "past"]


async def clock(engine: AsyncEngine) -> datetime:
    """Read the clock of Postgres."""
    async with engine.connect() as connection:
        return (await connection.execute(select(func.clock_timestamp()))).scalar_one()


async def test_a_scheduled_price_is_called_off(engine: AsyncEngine, store: PriceStore) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    done = await store.publish(publication("0.002", valid_from=at), ANN)
    off = await store.cancel(done.price.id, ANN, reason="too dear")
    assert off.price.cancelled is not None
    assert (off.price.state, off.price.cancelled.reason) == ("cancelled", "too dear")
    assert (await store.current())[0].until is None
    with pytest.raises(Unprocessable, match="only what is scheduled"):
        await store.cancel(done.price.id, ANN)
    in_force = await store.history("m")
    with pytest.raises(Unprocessable):
        await store.cancel(in_force[-1].id, ANN)
    assert await actions(engine) == ["price.schedule", "price.cancel"]


async def test_an_old_version_comes_back_as_a_new_one(engine: AsyncEngine, store: PriceStore) -> None:
    first = (await store.history("m"))[0]
    dearer = await store.publish(publication("0.002"), ANN)
    again = await store.reinstate(first.id, ANN, base=dearer.price.id)
    assert (again.price.rows, again.price.reason) == (first.rows, f"as in version {first.id}")
    assert again.price.id > dearer.price.id > first.id


async def test_the_second_of_two_who_change_a_price_is_told_what_both_changed(store: PriceStore) -> None:
    base = (await store.history("m"))[0].id
    await store.publish(publication("0.002", base=base), ANN)
    with pytest.raises(PriceConflict, match=r"ann@example\.org through dashboard") as refusal:
        await store.publish(publication("0.003", base=base), ANN)
    assert [(each.old, each.new) for each in refusal.value.theirs] == [("$0.001", "$0.002")]
    assert [(each.old, each.new) for each in refusal.value.yours] == [("$0.001", "$0.003")]
    assert [each.rows for each in await store.history("m")] == [per_request("0.002"), per_request("0.001")]


async def test_of_two_at_once_one_wins(store: PriceStore) -> None:
    base = (await store.history("m"))[0].id
    tries = [store.publish(publication(f"0.00{number}", base=base), ANN) for number in (2, 3, 4)]
    done = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(each, PriceConflict) for each in done) == 2
    assert len(await store.history("m")) == 2


async def test_nobody_gives_a_model_away_by_a_slip(store: PriceStore) -> None:
    with pytest.raises(Unprocessable, match="free on purpose"):
        await store.publish(publication("0"), ANN)
    done = await store.publish(Publication(model="m", draft=draft("0", free=True)), ANN)
    assert done.price.free


async def test_what_does_not_fit_the_model_is_named(store: PriceStore) -> None:
    rows = (
        PriceComponent("character", 1),
        PriceComponent("request", 1, (Condition("quality", values=("best",)),)),
        PriceComponent("request", 1, (Condition("size", values=("big",)),)),
        PriceComponent("request", 1),
        PriceComponent("request", 2),
    )
    with pytest.raises(Unprocessable) as refusal:
        await store.publish(Publication(model="m", draft=Draft(rows=rows)), ANN)
    fields = [each["field"] for each in refusal.value.details["problems"]]
    assert fields == ["price[0].per", "price[1].when", "price[2].when", "price[4].when"]
    with pytest.raises(Unprocessable, match="in the future"):
        await store.publish(publication("0.002", valid_from=datetime(2020, 1, 1, tzinfo=UTC)), ANN)
    with pytest.raises(Unprocessable, match="what it costs already"):
        await store.publish(publication("0.001"), ANN)
    with pytest.raises(NotFound):
        await store.publish(publication("0.002", model="nobody"), ANN)


async def test_an_account_pays_by_its_list(engine: AsyncEngine, store: PriceStore) -> None:
    lists, accounts = PriceLists(engine), Accounts(engine)
    await lists.create("partners", ANN)
    one = await accounts.create(NewAccount(name="Ada"))
    paying = await accounts.set_pricing(one.id, list_name="partners", discount_ppm=100_000, by=ANN)
    assert paying.discount_ppm == 100_000
    assert await sold(engine, "partners") == await sold(engine)
    done = await store.publish(publication("0.0005", price_list="partners", base=0), ANN)
    price = await sold(engine, "partners")
    plain = await sold(engine)
    assert price is not None
    assert plain is not None
    assert (price.id, plain.components) == (done.price.id, per_request("0.001"))
    assert (await lists.show("partners")).accounts == 1
    with pytest.raises(Conflict, match="1 accounts pay by this list"):
        await lists.remove("partners", ANN)
    await store.publish(Publication(model="m", draft=Draft(rows=()), price_list="partners"), ANN)
    assert await sold(engine, "partners") == plain


async def test_a_list_that_was_never_used_is_removed(engine: AsyncEngine) -> None:
    lists = PriceLists(engine)
    await lists.create("summer", ANN)
    await lists.rename("summer", "winter", ANN)
    with pytest.raises(Conflict, match="of this name"):
        await lists.create("winter", ANN)
    await lists.remove("winter", ANN)
    assert await lists.list() == []
    assert await actions(engine) == ["price_list.create", "price_list.rename", "price_list.remove"]


# -- two doors ------------------------------------------------------------------------------------------------


async def stored(engine: AsyncEngine) -> Catalog:
    async with engine.connect() as connection:
        return await read_catalog(connection)


async def apply_file(engine: AsyncEngine, catalog: Catalog, *, overwrite: bool = False) -> int:
    async with engine.begin() as connection:
        by = Signature(source="file", author="bob")
        return len((await apply_in(connection, catalog, by, overwrite=overwrite)).changes)


def repriced(catalog: Catalog, usd: str) -> Catalog:
    return msgspec.structs.replace(catalog, prices={"m": per_request(usd)})


async def test_a_file_does_not_overwrite_what_came_through_the_dashboard(
    engine: AsyncEngine, store: PriceStore
) -> None:
    old = msgspec.structs.replace(await stored(engine), prices_as_of=0)
    done = await store.publish(publication("0.002", reason="dearer"), ANN)
    change = (await compare(engine, repriced(old, "0.003")))[0]
    assert change.last is not None
    assert change.last.version == done.price.id
    with pytest.raises(PricedElsewhere, match=r"by ann@example.org \(dashboard\): dearer"):
        await apply_file(engine, repriced(old, "0.003"))
    exported = load(export(await stored(engine)).encode(), "export")
    assert exported.prices == {"m": per_request("0.002")}
    assert await apply_file(engine, repriced(exported, "0.004")) == 1
    last = (await store.history("m"))[0]
    assert (last.rows, last.door, last.author) == (per_request("0.004"), "file", "bob")


async def test_a_file_overwrites_where_that_is_meant(engine: AsyncEngine, store: PriceStore) -> None:
    old = msgspec.structs.replace(await stored(engine), prices_as_of=0)
    await store.publish(publication("0.002"), ANN)
    assert await apply_file(engine, repriced(old, "0.003"), overwrite=True) == 1
    assert (await store.history("m"))[0].rows == per_request("0.003")
    assert await apply_file(engine, repriced(old, "0.004")) == 1


async def test_a_file_that_says_the_same_changes_nothing(engine: AsyncEngine, store: PriceStore) -> None:
    old = msgspec.structs.replace(await stored(engine), prices_as_of=0)
    await store.publish(publication("0.002"), ANN)
    assert await apply_file(engine, repriced(old, "0.002")) == 0


async def test_lists_conditions_and_minimums_survive_being_exported(engine: AsyncEngine, store: PriceStore) -> None:
    await PriceLists(engine).create("partners", ANN)
    rows = (
        PriceComponent("request", parse_price("0.02"), (Condition("quality", values=("high",)),)),
        PriceComponent("request", parse_price("0.01")),
    )
    priced = Draft(rows=rows, minimum_nanos=parse_usd("0.015"))
    await store.publish(Publication(model="m", draft=priced), ANN)
    await store.publish(Publication(model="m", draft=draft("0.005"), price_list="partners"), ANN)
    exported = load(export(await stored(engine)).encode(), "export")
    assert exported.sold("m") == Sold(rows, parse_usd("0.015"))
    assert exported.price_lists == {"partners": {"m": Sold(per_request("0.005"))}}
    assert await apply_file(engine, exported) == 0


async def test_a_file_writes_price_lists(engine: AsyncEngine, store: PriceStore) -> None:
    catalog = msgspec.structs.replace(
        await stored(engine), price_lists={"partners": {"m": Sold(per_request("0.0004"))}}
    )
    assert await apply_file(engine, catalog) == 1
    price = await sold(engine, "partners")
    assert price is not None
    assert price.components == per_request("0.0004")
    assert await apply_file(engine, msgspec.structs.replace(catalog, price_lists=None)) == 0
    assert await apply_file(engine, msgspec.structs.replace(catalog, price_lists={})) == 1
    assert await sold(engine, "partners") == await sold(engine)


async def test_the_outcome_policy_is_part_of_a_price(engine: AsyncEngine, store: PriceStore) -> None:
    """What a version says of other outcomes is what is exported, so that a file does not undo it."""
    policy = msgspec.structs.replace((await stored(engine)).models["m"].outcome, failed="full")
    done = await store.publish(Publication(model="m", draft=draft("0.001", outcome=policy)), ANN)
    assert done.price.outcome.failed == "full"
    assert (await stored(engine)).models["m"].outcome == policy
    assert await apply_file(engine, await stored(engine)) == 0
    history: list[PriceRecord] = await store.history("m")
    assert len(history) == 2


async def test_a_file_that_is_applied_stands_in_the_audit_log(engine: AsyncEngine) -> None:
    catalog = msgspec.structs.replace(await stored(engine), prices_as_of=0)
    await file_door.apply_file(engine, repriced(catalog, "0.005"), file_door.file_actor())
    async with engine.connect() as connection:
        row = (await connection.execute(select(audit))).one()
    assert (row.action, row.object_id, row.door) == ("model.changed", "m", "file")
    assert row.changes == {"price per request": ["$0.001", "$0.005"]}


async def test_a_system_that_starts_keeps_prices_that_came_through_the_dashboard(
    engine: AsyncEngine, store: PriceStore
) -> None:
    old = msgspec.structs.replace(await stored(engine), prices_as_of=0)
    await PriceLists(engine).create("partners", ANN)
    await store.publish(publication("0.002"), ANN)
    await store.publish(publication("0.0005", price_list="partners"), ANN)
    edited = repriced(msgspec.structs.replace(old, price_lists={"partners": {}}), "0.003")
    worded = {"m": msgspec.structs.replace(old.models["m"], description="Another.")}
    wanted = msgspec.structs.replace(edited, models=worded)
    await file_door.apply_at_start(engine, wanted, file_door.file_actor(), source="up")
    now = await stored(engine)
    assert now.models["m"].description == "Another."
    assert now.prices == {"m": per_request("0.002")}
    assert now.price_lists == {"partners": {"m": Sold(per_request("0.0005"))}}
