"""The catalog in Postgres: applied whole, versioned by price, and written back the same."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.diff import diff
from gateway.catalog.export import export
from gateway.catalog.load import load, load_file
from gateway.catalog.model import Catalog, OutcomePolicy, Parameter, Pool, Route
from gateway.catalog.store import apply, compare, read_catalog
from gateway.db.catalog import model, price_version, revision
from tests.catalog.conftest import a_catalog, a_model, per_request

OWN = load_file(Path(__file__).parents[2] / "catalog.yaml")


async def versions(engine: AsyncEngine) -> list[tuple[int, str]]:
    async with engine.connect() as connection:
        rows = await connection.execute(select(price_version).order_by(price_version.c.id))
        return [(row.model_id, "".join(str(part["picos"]) for part in row.components)) for row in rows]


async def revision_of(engine: AsyncEngine) -> int:
    async with engine.connect() as connection:
        return int((await connection.execute(select(revision.c["catalog"]))).scalar_one())


async def stored(engine: AsyncEngine) -> Catalog:
    async with engine.connect() as connection:
        return await read_catalog(connection)


async def test_what_is_applied_is_read_back(engine: AsyncEngine) -> None:
    done = await apply(engine, OWN, source="file")
    assert done.revision == 1
    again = await stored(engine)
    assert diff(OWN, again) == ()
    assert list(again.models) == list(OWN.models)
    assert list(again.models["tiny-llama"].parameters) == list(OWN.models["tiny-llama"].parameters)


async def test_applying_an_export_changes_nothing(engine: AsyncEngine) -> None:
    await apply(engine, OWN, source="file")
    before = await versions(engine)
    exported = load(export(await stored(engine)).encode(), "export")
    done = await apply(engine, exported, source="file")
    assert (done.changes, done.revision) == ((), 1)
    assert await versions(engine) == before


async def test_a_price_version_is_made_only_where_components_change(engine: AsyncEngine) -> None:
    first = a_catalog(a_model("a"), a_model("b"))
    await apply(engine, first, source="file")
    dearer = msgspec.structs.replace(first, prices={"a": per_request("0.002"), "b": per_request("0.001")})
    await apply(engine, dearer, source="file")
    described = msgspec.structs.replace(
        dearer, models={**dearer.models, "b": a_model("b", parameters={"n": Parameter(type="integer", maximum=2)})}
    )
    done = await apply(engine, described, source="file")
    assert await versions(engine) == [(1, "1000000000"), (2, "1000000000"), (1, "2000000000")]
    assert done.revision == 3


async def test_a_changed_outcome_policy_makes_a_price_version_too(engine: AsyncEngine) -> None:
    """What is charged for a failure is part of what was promised: who was admitted keeps it."""
    await apply(engine, a_catalog(a_model("a")), source="file")
    strict = a_catalog(a_model("a", outcome=OutcomePolicy(failed="full")))
    await apply(engine, strict, source="file")
    await apply(engine, strict, source="file")
    assert await versions(engine) == [(1, "1000000000"), (1, "1000000000")]
    async with engine.connect() as connection:
        kept = (await connection.execute(select(price_version.c.outcome).order_by(price_version.c.id))).scalars()
        assert [policy["failed"] for policy in kept] == ["nothing", "full"]


async def test_a_model_that_is_taken_out_is_withdrawn_and_comes_back_with_its_number_and_price(
    engine: AsyncEngine,
) -> None:
    both = a_catalog(a_model("a"), a_model("b"))
    await apply(engine, both, source="file")
    await apply(engine, a_catalog(a_model("b")), source="file")
    assert list((await stored(engine)).models) == ["b"]
    await apply(engine, both, source="file")
    assert (await stored(engine)).models["a"].id == 1
    assert len(await versions(engine)) == 2


async def test_a_price_that_is_taken_away_stops_the_sale(engine: AsyncEngine) -> None:
    await apply(engine, a_catalog(), source="file")
    unpriced = msgspec.structs.replace(a_catalog(), prices={})
    await apply(engine, unpriced, source="file")
    assert (await stored(engine)).prices == {"m": ()}
    assert (await versions(engine))[-1] == (1, "")


async def test_a_catalog_that_postgres_refuses_leaves_nothing(engine: AsyncEngine) -> None:
    """One transaction: the pool that came first is gone too."""
    async with engine.begin() as connection:
        await connection.execute(text("alter table price_version add check (jsonb_array_length(components) < 1)"))
    with pytest.raises(Exception, match="check"):
        await apply(engine, a_catalog(), source="file")
    assert await stored(engine) == Catalog(pools={}, models={}, prices={})
    assert await revision_of(engine) == 0


async def test_applies_at_once_take_turns(engine: AsyncEngine) -> None:
    """Each sees the one before: one version a change, and the last one written is in force."""
    amounts = ["0.001", "0.002", "0.001", "0.002", "0.003", "0.003"]
    done = await asyncio.gather(*(apply(engine, a_catalog(usd=usd), source="file") for usd in amounts))
    changes = [each for each in sorted(done, key=lambda each: each.revision) if each.changes]
    assert len(await versions(engine)) == len(changes) == await revision_of(engine)
    last = changes[-1].changes[0].price[0].new
    assert (await stored(engine)).prices["m"] == per_request(last.removeprefix("$"))


async def test_a_scheduled_price_is_not_in_force_yet(engine: AsyncEngine) -> None:
    await apply(engine, a_catalog(), source="file")
    async with engine.begin() as connection:
        await connection.execute(
            insert(price_version).values(
                model_id=select(model.c.id).scalar_subquery(),
                components=[{"unit": "request", "picos": 1}],
                valid_from=func.now() + text("interval '1 hour'"),
                source="test",
            )
        )
    assert await compare(engine, a_catalog()) == ()


async def test_a_pool_is_forgotten_only_when_no_request_is_open_in_it(engine: AsyncEngine) -> None:
    old = Pool(name="old", engine="fake")
    new = Pool(name="new", engine="fake")
    await apply(engine, a_catalog(a_model(routes=(Route(pool="old"),)), old=old), source="file")
    moved = a_catalog(a_model(routes=(Route(pool="new"),)), new=new)
    async with engine.begin() as connection:
        await connection.execute(
            text(
                "insert into open_request (id, account_id, api_key_id, hold_nanos, deadline_at, model_id,"
                " price_version_id, task, keep, pool, gateway)"
                " values (gen_random_uuid(), 1, 1, 0, now(), 1, 1, 0, false, 'old', 'g')"
            )
        )
    for _ in range(2):
        await apply(engine, moved, source="file")
        assert await names_of_pools(engine) == ["new", "old"]
        assert list((await stored(engine)).pools) == ["new"]
    async with engine.begin() as connection:
        await connection.execute(text("delete from open_request"))
    await apply(engine, moved, source="file")
    assert await names_of_pools(engine) == ["new"]


async def names_of_pools(engine: AsyncEngine) -> list[str]:
    async with engine.connect() as connection:
        return list((await connection.execute(text("select name from pool order by name"))).scalars())
