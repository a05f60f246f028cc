"""How fast a pool has served of late, told by the settlers, which see every end, to the gateways."""

import msgspec


class ServiceTimes(msgspec.Struct, frozen=True, array_like=True):
    """How long requests took from being taken to their end, of late."""

    ends: float
    """How many ends it stands for; older ones count less."""
    mean_ms: float
    deviation_ms: float
    """The standard deviation."""
    p50_ms: float
    p90_ms: float
    units_per_s: float
    """Output tokens that one request got in a second; of what has no tokens, answers in a second."""


class PoolHistory(msgspec.Struct, frozen=True, array_like=True):
    """What one pool has served of late: all its ends, and the successes of each model."""

    all: ServiceTimes
    models: dict[str, ServiceTimes]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(PoolHistory)


def encode_history(history: PoolHistory) -> bytes:
    """Encode the history of a pool."""
    return _ENCODER.encode(history)


def decode_history(data: bytes) -> PoolHistory:
    """Decode the history of a pool. Raises msgspec.MsgspecError."""
    return _DECODER.decode(data)
