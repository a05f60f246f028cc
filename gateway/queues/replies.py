"""The reply channel of one gateway process: what workers and settlers tell of its requests."""

from collections.abc import Callable

import msgspec
import structlog

from gateway.contract.events import Frame, decode_frames
from gateway.queues.event_log import Channels
from gateway.queues.keys import reply_channel

log = structlog.get_logger()


class Replies:
    """Hands each frame that comes for the gateway `name` to `deliver`.

    `gap` is told when frames may have been missed: the connection was lost, or a message could not be read.
    Single lost deltas show in the sequence numbers (order.py).
    """

    def __init__(
        self, channels: Channels, name: str, deliver: Callable[[Frame], None], gap: Callable[[], None]
    ) -> None:
        self._channels = channels
        self._channel = reply_channel(name)
        self._deliver = deliver
        self._gap = gap

    async def open(self) -> None:
        """Begin to listen. Raises QueueUnavailable."""
        await self._channels.subscribe(self._channel, self._hear, self._gap)

    async def close(self) -> None:
        """Listen no more."""
        await self._channels.unsubscribe(self._channel, self._hear)

    def _hear(self, message: bytes) -> None:
        try:
            frames = decode_frames(message)
        except msgspec.MsgspecError as error:
            log.error("replies.unreadable", error=str(error))
            self._gap()
            return
        deliver = self._deliver
        for frame in frames:
            deliver(frame)
