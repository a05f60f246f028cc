"""What a settler does with requests that go on in another pool."""

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.catalog.model import Pool, Snapshot
from gateway.flow.hand_over import Arrivals
from gateway.ledger.open_requests import OpenRequests
from gateway.queues.memory import MemoryQueues
from gateway.queues.port import Depth
from gateway.settler_metrics import SettlerMetrics
from tests.conformance.backends import POOL, ended, onward, request, stopped, waiting


class Office:
    """A settler's arrivals over the twin in memory, with the pools of a catalog. Postgres is never asked here."""

    def __init__(self, *pools: str) -> None:
        self.queues = MemoryQueues()
        self.metrics = SettlerMetrics()
        known = {name: Pool(name=name, engine="fake") for name in pools}
        snapshot = Snapshot(revision=1, models={}, pools=known, prices={}, model_names={})
        self.arrivals = Arrivals(
            queues=self.queues.settler(),
            queue=self.queues.pool,
            open_requests=OpenRequests(create_async_engine("postgresql+asyncpg://nobody@127.0.0.1:1/none")),
            snapshot=lambda: snapshot,
            metrics=self.metrics,
        )

    def handed_over(self, pool: str, to: str) -> float | None:
        """Read how many were counted."""
        return self.metrics.registry.get_sample_value("faregate_handed_over_total", {"pool": pool, "to": to})


@pytest.fixture
def office() -> Office:
    return Office(POOL, "next")


async def test_what_goes_on_is_put_into_its_next_queue_and_acknowledged(office: Office) -> None:
    """Beside an end, which alone is to be charged."""
    one, other = request(legs=["next"]), request()
    await office.queues.pool(POOL).enqueue(waiting(one, other))
    worker = office.queues.worker(POOL)
    failed, done = sorted(await worker.take(2, wait_s=0), key=lambda taken: taken.request.id == other.id)
    await worker.hand_over([onward(failed)])
    await worker.finish([ended(done)])
    entries = await office.arrivals.settlements(10, wait_s=0)
    assert [end.id for _, entry in entries for end in entry.ended] == [other.id]
    assert await office.queues.pool(POOL).depth() == Depth(0, 0, 1)
    assert (await office.queues.pool("next").depth()).waiting == 1
    assert office.handed_over(POOL, "next") == 1.0


async def test_a_pool_forgets_a_request_when_it_has_ended_in_another(office: Office) -> None:
    one = request(legs=["next"])
    await office.queues.pool(POOL).enqueue(waiting(one))
    worker = office.queues.worker(POOL)
    [failed] = await worker.take(1, wait_s=0)
    await worker.hand_over([onward(failed)])
    await office.arrivals.settlements(10, wait_s=0)
    await office.queues.pool(POOL).cancel(stopped(one))
    [(_, entry)] = await office.arrivals.settlements(10, wait_s=0)
    assert (entry.ended[0].pool, entry.ended[0].steps[0].pool) == ("next", POOL)
    assert office.queues.state(POOL).moved
    await office.arrivals.forget(entry.ended)
    assert not office.queues.state(POOL).moved
    assert not office.queues.state(POOL).cancels


async def test_a_request_whose_next_pool_has_left_the_catalog_ends_as_its_last_attempt_did() -> None:
    office = Office(POOL)
    one = request(legs=["next"], reply="gw")
    await office.queues.pool(POOL).enqueue(waiting(one))
    worker = office.queues.worker(POOL)
    [failed] = await worker.take(1, wait_s=0)
    await worker.hand_over([onward(failed)])
    [(_, entry)] = await office.arrivals.settlements(10, wait_s=0)
    [end] = entry.ended
    assert (end.id, end.outcome, end.reason, end.reply) == (one.id, "failed", "engine_error", "gw")
    assert [step.attempt for step in end.steps] == [1]
    assert (await office.queues.pool("next").depth()).waiting == 0
