"""Where settlers leave the histories of pools, and gateways read them. Nothing depends on them but estimates."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from gateway.contract.history import PoolHistory, decode_history, encode_history
from gateway.queues.wire import Wire

KEEP_S = 900
"""How long a history stands that no settler repeats."""


class Histories(Protocol):
    """What both twins do."""

    async def publish(self, histories: Mapping[str, PoolHistory]) -> None:
        """Leave the histories of pools. Of several settlers, each of which sees its share, the last word stands."""
        ...

    async def read(self, pools: Sequence[str]) -> dict[str, PoolHistory]:
        """Read the histories of those pools that have one."""
        ...


class RedisHistories:
    """One key a pool, in the pool's slot."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def publish(self, histories: Mapping[str, PoolHistory]) -> None:
        """Leave the histories of pools; all leave in one write. Raises QueueUnavailable."""
        await asyncio.gather(
            *(
                self._wire.call("SET", _key(pool), encode_history(history), "EX", KEEP_S)
                for pool, history in histories.items()
            )
        )

    async def read(self, pools: Sequence[str]) -> dict[str, PoolHistory]:
        """Read the histories of those pools that have one. Raises QueueUnavailable."""
        found = await asyncio.gather(*(self._wire.call("GET", _key(pool)) for pool in pools))
        read = {pool: _read(data) for pool, data in zip(pools, found, strict=True) if data is not None}
        return {pool: history for pool, history in read.items() if history is not None}


class MemoryHistories:
    """The twin in memory."""

    def __init__(self) -> None:
        self._told: dict[str, PoolHistory] = {}

    async def publish(self, histories: Mapping[str, PoolHistory]) -> None:
        """Leave the histories of pools."""
        self._told.update(histories)

    async def read(self, pools: Sequence[str]) -> dict[str, PoolHistory]:
        """Read the histories of those pools that have one."""
        return {pool: self._told[pool] for pool in pools if pool in self._told}


def _read(data: bytes) -> PoolHistory | None:
    """Read a history; None where another release wrote it in another form."""
    try:
        return decode_history(data)
    except msgspec.MsgspecError:
        return None


def _key(pool: str) -> bytes:
    return f"fg:{{{pool}}}:history".encode()
