"""The HTTP server of a gateway: told to stop, it first says so, and only then closes its door."""

import time
from types import FrameType

import uvicorn

from gateway.readiness import Readiness


class DrainingServer(uvicorn.Server):
    """From a signal on, `/health/ready` says that it is draining; after `notice_s` no connection is taken any more."""

    def __init__(self, config: uvicorn.Config, readiness: Readiness, notice_s: float) -> None:
        super().__init__(config)
        self._readiness = readiness
        self._notice_s = notice_s
        self._exit_at: float | None = None
        self._signal = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Hear a signal: the first begins the notice, the second cuts it short."""
        if self._readiness.draining or not self._notice_s:
            super().handle_exit(sig, frame)
        elif self._exit_at is None:
            self._signal, self._exit_at = sig, time.monotonic() + self._notice_s
        self._readiness.draining = True

    async def on_tick(self, counter: int) -> bool:
        """Look every tenth of a second whether the notice is over."""
        if self._exit_at is not None and time.monotonic() >= self._exit_at:
            self._exit_at = None
            super().handle_exit(self._signal, None)
        return await super().on_tick(counter)
