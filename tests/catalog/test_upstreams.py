"""Upstreams in Postgres, and in the snapshot that gateways hold."""

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.diff import diff
from gateway.catalog.model import Catalog, Model, Parameter, Pool, Route, Upstream
from gateway.catalog.snapshot import SnapshotSource
from gateway.catalog.store import apply, read_catalog
from gateway.pricing.price import PriceComponent
from tests.catalog.conftest import a_catalog, a_model

CLOUD = Pool(name="cloud", engine="upstream")
FAKE = Pool(name="fake", engine="fake")
ACME = Upstream(name="acme", protocol="openai", url="https://acme.example/v1", pool="cloud", timeout_s=20)
ROUTE = Route(
    pool="cloud",
    upstream="acme",
    model="acme/m",
    order=1,
    fields={"max_tokens": "limits.output"},
    fixed={"options": {"mode": "std", "list": [1, 2.5, None]}},
    cost=(PriceComponent("request", 7),),
)


def served(*routes: Route, name: str = "m") -> Model:
    return a_model(
        name,
        routes=routes,
        aliases=(f"acme/{name}",),
        parameters={"lyrics": Parameter(type="string", required=True), "cover": Parameter(type="string", url=True)},
    )


def whole(upstream: Upstream = ACME) -> Catalog:
    return a_catalog(served(Route(pool="fake"), ROUTE), upstreams=(upstream,), cloud=CLOUD, fake=FAKE)


async def stored(engine: AsyncEngine) -> Catalog:
    async with engine.connect() as connection:
        return await read_catalog(connection)


async def names(engine: AsyncEngine) -> list[str]:
    async with engine.connect() as connection:
        return list((await connection.execute(text("select name from upstream order by name"))).scalars())


async def test_what_is_applied_is_read_back(engine: AsyncEngine) -> None:
    await apply(engine, whole(), source="file")
    again = await stored(engine)
    assert diff(whole(), again) == ()
    assert again.upstreams == {"acme": ACME}
    assert again.models["m"].routes[1] == ROUTE
    assert (await apply(engine, whole(), source="file")).changes == ()


async def test_a_snapshot_finds_models_by_their_aliases(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, whole(), source="file")
    await source.refresh()
    snapshot = source.snapshot()
    assert snapshot.upstreams == {"acme": ACME}
    assert snapshot.model("acme/m") is snapshot.models["m"]
    assert snapshot.model("acme/n") is None


async def test_a_changed_upstream_reaches_the_gateways(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, whole(), source="file")
    moved = msgspec.structs.replace(ACME, url="https://elsewhere.example")
    done = await apply(engine, whole(moved), source="file")
    assert [(change.kind, change.name, change.action) for change in done.changes] == [("upstream", "acme", "changed")]
    await source.refresh()
    assert source.snapshot().upstreams["acme"].url == "https://elsewhere.example"


async def test_a_gateway_without_the_engine_lists_what_else_can_serve(engine: AsyncEngine) -> None:
    only = served(ROUTE, name="only")
    catalog = a_catalog(served(Route(pool="fake"), ROUTE), only, upstreams=(ACME,), cloud=CLOUD, fake=FAKE)
    await apply(engine, catalog, source="file")
    for engines, listed, routes in (("fake", ["m"], 1), ("upstream", ["m", "only"], 1), ("", ["m", "only"], 2)):
        source = SnapshotSource(engine, engines=engines)
        await source.refresh()
        snapshot = source.snapshot()
        assert (list(snapshot.models), len(snapshot.models["m"].routes)) == (listed, routes)


async def test_an_upstream_of_a_newer_release_is_left_out_with_the_routes_to_it(engine: AsyncEngine) -> None:
    source = SnapshotSource(engine)
    await apply(engine, whole(), source="file")
    async with engine.begin() as connection:
        await connection.execute(text('update upstream set spec = spec || \'{"protocol": "telepathy"}\''))
    await source.refresh()
    assert source.snapshot().upstreams == {}
    assert [route.upstream for route in source.snapshot().models["m"].routes] == [""]


async def test_an_upstream_is_forgotten_only_when_no_request_is_open_in_its_pool(engine: AsyncEngine) -> None:
    """Its workers must know it as long as they may have to look at a job that is bought there."""
    source = SnapshotSource(engine)
    await apply(engine, whole(), source="file")
    without = a_catalog(a_model(), cloud=CLOUD, fake=FAKE)
    async with engine.begin() as connection:
        await connection.execute(
            text(
                "insert into open_request (id, account_id, api_key_id, hold_nanos, deadline_at, model_id,"
                " price_version_id, task, keep, pool, gateway)"
                " values (gen_random_uuid(), 1, 1, 0, now(), 1, 1, 0, false, 'cloud', 'g')"
            )
        )
    for _ in range(2):
        await apply(engine, without, source="file")
        assert await names(engine) == ["acme"]
        assert (await stored(engine)).upstreams == {}
    await source.refresh()
    assert source.snapshot().upstreams["acme"].withdrawn
    async with engine.begin() as connection:
        await connection.execute(text("delete from open_request"))
    await apply(engine, without, source="file")
    assert await names(engine) == []
