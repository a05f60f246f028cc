"""The names of all keys and channels in Redis. The tag `{pool}` keeps a pool's keys in one slot of a cluster."""

from functools import cache

import msgspec

GATEWAYS = b"fg:gateways"
GROUP = b"settlers"
"""The consumer group of every settlements stream."""


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of one pool; what lies in each is said by the scripts that write it."""

    queue: bytes
    jobs: bytes
    tags: bytes
    wake: bytes
    leases: bytes
    attempts: bytes
    excused: bytes
    cancels: bytes
    moved: bytes
    settlements: bytes
    workers: bytes
    orders: bytes
    tally: bytes
    spec: bytes
    control: bytes
    """The channel on which workers are told which requests are to stop."""

    def events(self, request_id: str) -> bytes:
        """Name the event log of a kept request, which is also the channel that tells of new events."""
        return self.spec[: -len(b"spec")] + b"events:" + request_id.encode()


@cache
def keys_of(pool: str) -> Keys:
    """Name the keys of a pool."""
    head = f"fg:{{{pool}}}:"
    return Keys(**{name: (head + name).encode() for name in Keys.__struct_fields__})


def reply_channel(name: str) -> bytes:
    """Name the channel on which a gateway hears of its requests; `name` is what stands in `Request.reply`."""
    return b"fg:reply:" + name.encode()
