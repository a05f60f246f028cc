"""Request ids: `req_` and a UUIDv7 (RFC 9562), so they sort by admission and carry its time."""

import os
import time
from uuid import UUID

PREFIX = "req_"
_POOL_BYTES = 10 * 512
_pool = b""
_at = 0


def new_request_id() -> str:
    """Make a request id: 48 bits of Unix milliseconds, then 74 random bits drawn from a pool of random bytes."""
    global _pool, _at
    if _at >= len(_pool):
        _pool, _at = os.urandom(_POOL_BYTES), 0
    draw = int.from_bytes(_pool[_at : _at + 10])
    _at += 10
    head = (time.time_ns() // 1_000_000 << 16) | 0x7000 | (draw >> 68)
    tail = (0b10 << 62) | (draw & 0x3FFFFFFFFFFFFFFF)
    return f"{PREFIX}{head:016x}{tail:016x}"


def uuid_of(request_id: str) -> UUID:
    """Give the UUID inside a request id. Raises ValueError when it is not one."""
    if len(request_id) != 36 or not request_id.startswith(PREFIX):
        raise ValueError("not a request id")
    return UUID(hex=request_id[4:])


def request_id_of(value: UUID) -> str:
    """Give the request id that stands for a UUID."""
    return PREFIX + value.hex


def admitted_ms(request_id: str) -> int:
    """Give the Unix milliseconds at which a request id was made."""
    return int(request_id[4:16], 16)
