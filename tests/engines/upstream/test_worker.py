"""A real worker that calls upstreams, on the queue's twin in memory: what it says of itself, and what ends tell."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gateway.contract.pools import PoolSpec, ServedModel, UpstreamSpec
from gateway.contract.request import Leg
from tests.engines.upstream.several import model, target
from tests.unit.workers.conftest import LEASE_MS, POOL, WITHIN_S, Pool
from tests.upstreams.openai import OpenAi, Way
from tests.upstreams.serving import standing
from workers.engine import Access
from workers.worker import Exit


@pytest.fixture
def there() -> Iterator[OpenAi]:
    stand_in = OpenAi()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    made = Pool(tmp_path)
    yield made
    for worker, task in made.running:
        worker.stopping.set()
        await asyncio.wait({task})


async def serve(pool: Pool, there: OpenAi, *models: ServedModel) -> None:
    """Say what the pool serves: an upstream with a key, and one without."""
    specs = [
        UpstreamSpec(name="there", protocol="openai", url=there.base, timeout_s=60),
        UpstreamSpec(name="key-less", protocol="openai", url=there.base),
    ]
    spec = PoolSpec(pool=POOL, engine="upstream", models=list(models), lease_ms=LEASE_MS, upstreams=specs)
    await pool.queue.publish_spec(spec)


def access(there: OpenAi) -> dict[str, Access]:
    return {"THERE": Access(key=there.key)}


async def told(pool: Pool, name: str) -> str:
    """Wait until a model has loaded, and give its state."""
    while True:
        status = await pool.status()
        if status is not None and status.models[name].state != "loading":
            return f"{status.models[name].state} {status.models[name].detail}".strip()
        await asyncio.sleep(0.02)


async def test_an_end_tells_units_and_every_attempt_with_its_cost(pool: Pool, there: OpenAi) -> None:
    await serve(pool, there, model("m", target("there", "bad"), target("there", "good", order=1)))
    there.ways |= {
        "bad": Way(status=500),
        "good": Way(usage={"prompt_tokens": 4, "completion_tokens": 6, "cost": 0.001}),
    }
    pool.start(upstreams=access(there))
    await pool.submit("m")
    (end,) = await pool.ended()
    assert (end.outcome, end.units.input_tokens, end.units.output_tokens) == ("succeeded", 4, 6)
    failed, made = end.steps
    assert (failed.name, failed.model, failed.outcome, failed.reason) == ("there", "bad", "failed", "upstream_error")
    assert (made.model, made.cost_nanos, made.worker, made.pool) == ("good", 1_000_000, "w1", POOL)
    assert failed.detail.startswith("HTTP 500")


async def test_a_heartbeat_tells_how_upstreams_stand_and_what_setting_is_missing(pool: Pool, there: OpenAi) -> None:
    await serve(pool, there, model("m", target("there")), model("n", target("key-less")))
    pool.start(upstreams=access(there))
    assert await told(pool, "n") == "unset FAREGATE_UPSTREAM_KEY_LESS_KEY"
    status = await pool.status()
    assert status is not None
    assert {name: state.state for name, state in status.upstreams.items()} == {"there": "closed", "key-less": "unset"}
    assert there.key not in repr(status)


async def test_a_worker_without_any_key_stays_and_fails_what_came_too_early(
    pool: Pool, there: OpenAi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.worker.FAILED_S", 0.1)
    await serve(pool, there, model("n", target("key-less")))
    worker, task = pool.start()
    assert (await told(pool, "n")).startswith("unset")
    await pool.submit("n")
    (end,) = await pool.ended()
    assert (end.outcome, end.forward_began, end.steps) == ("failed", False, [])
    await asyncio.sleep(0.3)
    assert not task.done()
    status = await pool.status()
    assert status is not None
    assert status.capacity == 0
    assert there.seen == []
    worker.stopping.set()
    assert await task is Exit.DRAINED


async def test_what_fails_at_every_upstream_is_handed_to_the_next_leg_with_what_was_tried(
    pool: Pool, there: OpenAi
) -> None:
    await serve(pool, there, model("m", target("there", "bad")))
    there.ways["bad"] = Way(status=503)
    pool.start(upstreams=access(there))
    request_id = await pool.submit("m", legs=[Leg("other", "elsewhere", 9)])
    async with asyncio.timeout(WITHIN_S):
        while not (entries := await pool.settler.settlements([POOL], 10, wait_s=0.1)):
            pass
    ((_, entry),) = entries
    assert entry.move is not None
    assert (entry.move.pool, entry.move.request.id, entry.move.request.model) == ("other", request_id, "elsewhere")
    tried = [(step.name, step.reason) for step in entry.move.request.steps if step.upstream]
    assert tried == [("there", "upstream_error")]
