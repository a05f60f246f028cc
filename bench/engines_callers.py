"""What a gateway is to a worker, and nothing more: it enqueues requests, and reads what comes back."""

import asyncio
import time
from collections.abc import Iterator
from uuid import uuid4

import msgspec

from bench.engines_host import MESSAGES
from gateway.contract.events import Ended, Frame, TextDelta
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import ChatInput
from gateway.contract.request import Request, encode_input
from gateway.queues.port import Waiting
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.replies import Replies


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much work a round is: so many requests of so many tokens by so many callers, one after the other."""

    streams: int = 16
    requests: int = 64
    tokens: int = 128
    rounds: int = 5

    @property
    def total(self) -> int:
        """Count the tokens of a round."""
        return self.requests * self.tokens


class Callers:
    """Callers of one pool, between `open` and `close`."""

    def __init__(self, redis_url: str, pool: str) -> None:
        self._name = f"bench-{uuid4().hex[:8]}"
        self._queues = RedisQueues(redis_url)
        self._pool = pool
        self._replies = Replies(self._queues.channels, self._name, self._hear, self._gap)
        self._ends: dict[str, asyncio.Future[Ended]] = {}
        self._tokens = 0

    async def open(self) -> None:
        """Begin to listen."""
        await self._replies.open()

    async def close(self) -> None:
        """Listen no more."""
        await self._replies.close()
        await self._queues.close()

    async def run(self, plan: Plan) -> float:
        """Run a round; answers its seconds. Raises RuntimeError where a token is missing."""
        left, self._tokens = iter(range(plan.requests)), 0
        given = {"messages": MESSAGES, "max_tokens": plan.tokens, "ignore_eos": True}
        packed = encode_input(msgspec.convert(given, ChatInput))
        began = time.perf_counter()
        await asyncio.gather(*(self._caller(left, packed) for _ in range(plan.streams)))
        seconds = time.perf_counter() - began
        if self._tokens != plan.total:
            raise RuntimeError(f"{self._tokens} tokens came of {plan.total}")
        return seconds

    async def _caller(self, left: Iterator[int], packed: bytes) -> None:
        queue = self._queues.pool(self._pool)
        for _ in left:
            request_id = new_request_id()
            end = self._ends[request_id] = asyncio.get_running_loop().create_future()
            now_us = time.time_ns() // 1000
            request = Request(request_id, 1, self._pool, "chat", packed, 1, self._name, stream=True, enqueued_us=now_us)
            await queue.enqueue([Waiting(request)])
            ended = await end
            del self._ends[request_id]
            if ended.outcome != "succeeded":
                raise RuntimeError(f"a request ended as {ended.outcome}: {ended.detail}")

    def _hear(self, frame: Frame) -> None:
        if isinstance(frame.event, TextDelta):
            self._tokens += frame.event.tokens
        elif isinstance(frame.event, Ended) and frame.id in self._ends:
            self._ends[frame.id].set_result(frame.event)

    def _gap(self) -> None:
        for end in self._ends.values():
            end.set_exception(RuntimeError("the connection to Valkey was lost"))
