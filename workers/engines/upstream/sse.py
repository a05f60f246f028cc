"""Server-sent events, as upstreams stream them (WHATWG HTML, "Server-sent events")."""

from collections.abc import Iterator

import msgspec

from workers.engines.upstream.failures import unreadable

MOST_EVENT_BYTES = 32 * 1024 * 1024
"""Of one event: a drawn image may come in one."""


class ServerEvent(msgspec.Struct, frozen=True):
    """One event: its name, empty where it has none, and its data."""

    name: str
    data: bytes


class SseReader:
    """Cuts a body that comes in pieces into events."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Take the next piece, and give the events that it completes. Raises UpstreamFailed for one too long."""
        rest = self._rest + piece if self._rest else piece
        lines = rest.split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MOST_EVENT_BYTES or sum(map(len, self._data)) > MOST_EVENT_BYTES:
            raise unreadable(f"an event of more than {MOST_EVENT_BYTES} bytes")
        for line in lines:
            if line.endswith(b"\r"):
                line = line[:-1]
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    yield ServerEvent(self._name, data)
                    self._data = []
                self._name = ""
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("latin-1")
