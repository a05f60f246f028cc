"""The snapshot that gateways and settlers hold."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from sqlalchemy import event, func, insert, text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.model import OutcomePolicy, Pool, Route
from gateway.catalog.snapshot import SnapshotSource
from gateway.catalog.store import apply
from gateway.db.catalog import price_version
from gateway.db.session import slow_engine
from gateway.errors import Unavailable
from tests.catalog.conftest import a_catalog, a_model, per_request

FAKE = Pool(name="fake", engine="fake")
GPU = Pool(name="gpu", engine="vllm")


async def test_a_snapshot_has_models_with_their_prices_in_force(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, a_catalog(), source="file")
    await source.refresh()
    snapshot = source.snapshot()
    assert snapshot.revision == 1
    model = snapshot.models["m"]
    assert model.price is not None
    assert model.price.components == per_request("0.001")
    assert snapshot.prices[model.price.id] == model.price
    assert snapshot.model_names == {model.id: "m"}
    assert snapshot.pools["fake"].engine == "fake"


async def test_nothing_is_read_again_while_nothing_changes(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, a_catalog(), source="file")
    await source.refresh()
    before, at = source.snapshot(), source.refreshed_at
    await source.refresh()
    assert source.snapshot() is before
    assert source.refreshed_at > at


async def test_an_old_price_is_kept_for_requests_that_pinned_it(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, a_catalog(usd="0.001"), source="file")
    await apply(engine, a_catalog(usd="0.002"), source="file")
    await source.refresh()
    snapshot = source.snapshot()
    assert {number: price.components for number, price in snapshot.prices.items()} == {
        1: per_request("0.001"),
        2: per_request("0.002"),
    }
    assert snapshot.models["m"].price == snapshot.prices[2]


async def test_a_withdrawn_model_cannot_be_called_and_can_still_be_settled(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    policy = OutcomePolicy(cancelled="full")
    await apply(engine, a_catalog(a_model("a", outcome=policy), a_model("b")), source="file")
    await apply(engine, a_catalog(a_model("b")), source="file")
    await source.refresh()
    snapshot = source.snapshot()
    assert list(snapshot.models) == ["b"]
    assert snapshot.model_names == {1: "a", 2: "b"}
    assert snapshot.prices[1].outcome == policy
    assert len(snapshot.prices) == 2


async def test_a_withdrawn_pool_is_still_settled(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, a_catalog(fake=FAKE, gpu=GPU), source="file")
    await apply(engine, a_catalog(fake=FAKE), source="file")
    await source.refresh()
    assert source.snapshot().pools["gpu"].withdrawn


async def test_a_model_without_a_price_is_listed_and_not_for_sale(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, a_catalog(), source="file")
    await apply(engine, msgspec.structs.replace(a_catalog(), prices={}), source="file")
    await source.refresh()
    assert source.snapshot().models["m"].price is None
    assert len(source.snapshot().prices) == 2


@pytest.mark.parametrize(
    ("engines", "listed", "routes"),
    [
        ("", ["cpu", "both"], ["gpu", "fake"]),
        ("fake", ["cpu", "both"], ["fake"]),
        ("vllm, speech", ["both"], ["gpu"]),
        ("speech", [], None),
    ],
)
async def test_models_are_listed_where_an_engine_of_theirs_is_started(
    engine: AsyncEngine, engines: str, listed: list[str], routes: list[str] | None
) -> None:
    both = a_model("both", routes=(Route(pool="gpu"), Route(pool="fake", order=1)))
    source = SnapshotSource(engine, engines=engines)
    await apply(engine, a_catalog(a_model("cpu"), both, fake=FAKE, gpu=GPU), source="file")
    await source.refresh()
    snapshot = source.snapshot()
    assert list(snapshot.models) == listed
    if routes is not None:
        assert [route.pool for route in snapshot.models["both"].routes] == routes
    assert snapshot.prices.keys() == {1, 2}


async def test_what_a_newer_release_wrote_is_left_out_and_the_rest_serves(engine: AsyncEngine) -> None:
    """And a price that cannot be read sells nothing: it is never taken for zero."""
    source = SnapshotSource(engine)
    await apply(engine, a_catalog(a_model("a"), a_model("b"), a_model("c")), source="file")
    async with engine.begin() as connection:
        await connection.execute(text("update model set spec = spec || '{\"tasks\": [\"dance\"]}' where name = 'a'"))
        await connection.execute(text("update model set spec = spec || '{\"mood\": 1}' where name = 'b'"))
        await connection.execute(
            insert(price_version).values(
                model_id=3, components=[{"unit": "smile", "picos": 1}], valid_from=func.now(), source="test"
            )
        )
    await source.refresh()
    snapshot = source.snapshot()
    assert {name: model.price is not None for name, model in snapshot.models.items()} == {"b": True, "c": False}
    assert snapshot.model_names == {1: "a", 2: "b", 3: "c"}


async def test_a_scheduled_price_comes_into_force_without_any_other_change(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, a_catalog(), source="file")
    async with engine.begin() as connection:
        await connection.execute(
            insert(price_version).values(
                model_id=1,
                components=[{"unit": "request", "picos": 5}],
                valid_from=func.clock_timestamp() + text("interval '0.4 s'"),
                source="test",
            )
        )
    await source.refresh()
    before = source.snapshot()
    async with engine.connect() as connection:
        early = await connection.scalar(text("select clock_timestamp() < max(valid_from) from price_version"))
    assert before.models["m"].price == before.prices[1] or not early
    async with asyncio.timeout(30):
        while source.snapshot().models["m"].price != source.snapshot().prices[2]:
            await asyncio.sleep(0.05)
            await source.refresh()


async def test_a_change_arrives_within_a_second(engine: AsyncEngine) -> None:
    source, stopping = SnapshotSource(engine, every_s=0.05), asyncio.Event()
    following = asyncio.create_task(source.run(stopping))
    took_s = []
    for revision in (1, 2, 3):  # the quickest counts: a machine may pause
        await apply(engine, a_catalog(usd=f"0.00{revision}"), source="file")
        began_s = time.monotonic()
        async with asyncio.timeout(30):
            while source.snapshot().revision < revision:
                await asyncio.sleep(0.01)
        took_s.append(time.monotonic() - began_s)
    assert min(took_s) < 1
    assert "m" in source.snapshot().models
    stopping.set()
    await following


@pytest.fixture
async def lame_engine(database_url: str) -> AsyncIterator[tuple[AsyncEngine, list[bool]]]:
    """Answer an engine whose connections are refused while the flag is true."""
    made, away = slow_engine(database_url, pool_size=1), [False]

    @event.listens_for(made.sync_engine, "do_connect")
    def refuse(*_: Any) -> None:
        if away[0]:
            raise ConnectionRefusedError

    yield made, away
    await made.dispose()


async def test_the_last_snapshot_serves_while_postgres_is_away(lame_engine: tuple[AsyncEngine, list[bool]]) -> None:
    engine, away = lame_engine
    source = SnapshotSource(engine)
    await apply(engine, a_catalog(), source="file")
    await source.refresh()
    before, at = source.snapshot(), source.refreshed_at
    await engine.dispose()
    away[0] = True
    with pytest.raises(Unavailable):
        await source.refresh()
    assert source.snapshot() is before
    assert source.refreshed_at == at
    away[0] = False
    await source.refresh()
    assert source.refreshed_at > at
