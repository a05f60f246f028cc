"""What settlers say of how fast pools serve, and gateways read."""

from gateway.contract.history import PoolHistory, ServiceTimes
from gateway.queues.histories import Histories, MemoryHistories, RedisHistories
from tests.conformance.backends import Backend, InRedis

TIMES = ServiceTimes(3.0, 100.0, 10.0, 99.0, 120.0, 5.5)


def histories_of(backend: Backend) -> Histories:
    return RedisHistories(backend.queues.wire) if isinstance(backend, InRedis) else MemoryHistories()


async def test_the_last_word_on_a_pool_stands(backend: Backend) -> None:
    histories = histories_of(backend)
    assert await histories.read(["p", "q"]) == {}
    await histories.publish({"p": PoolHistory(TIMES, {}), "q": PoolHistory(TIMES, {"m": TIMES})})
    later = PoolHistory(TIMES, {"m": TIMES})
    await histories.publish({"p": later})
    assert await histories.read(["p", "q", "r"]) == {"p": later, "q": later}


async def test_what_another_release_wrote_is_no_history_and_no_fault(in_redis: InRedis) -> None:
    in_redis.client.set("fg:{p}:history", b"\x01something else")
    assert await histories_of(in_redis).read(["p"]) == {}
