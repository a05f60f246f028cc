"""Which gateway has which revision of the catalog, in memory and in Redis alike."""

from datetime import UTC, datetime

from gateway.queues.revisions import MemoryRevisions, RedisRevisions, Revisions, gateways_at
from tests.conformance.backends import Backend, InRedis


def revisions_of(backend: Backend) -> Revisions:
    return RedisRevisions(backend.queues.wire) if isinstance(backend, InRedis) else MemoryRevisions()


async def test_a_revision_has_arrived_once_all_that_live_have_it(backend: Backend) -> None:
    revisions = revisions_of(backend)
    assert (await gateways_at(revisions, 1)).gateways == 0
    await revisions.report("a", 7)
    await revisions.report("b", 6)
    some = await gateways_at(revisions, 7)
    assert (some.gateways, some.having, some.last_at) == (2, 1, None)
    assert some.text(datetime.now(UTC)) == "1 of 2 gateways have it"
    await revisions.report("b", 8)
    all_of_them = await gateways_at(revisions, 7)
    assert (all_of_them.gateways, all_of_them.having) == (2, 2)
    assert all_of_them.last_at is not None
    assert all_of_them.text(all_of_them.last_at) == "2 of 2 gateways have it, 0.0 s"


async def test_what_is_said_again_keeps_its_instant(backend: Backend) -> None:
    revisions = revisions_of(backend)
    await revisions.report("a", 7)
    first = (await revisions.read())[0]
    await revisions.report("a", 7)
    again = (await revisions.read())[0]
    assert again.since == first.since
    assert again.seen >= first.seen
