"""A line between a process and a server that can be cut, and can go silent, and comes back at the same address."""

import contextlib
import select
import socket
import threading
from urllib.parse import urlsplit, urlunsplit

PATIENCE_S = 0.1


class Line:
    """Passes bytes both ways. `url` is the server's, by way of the line."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._there = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._address = self._listener.getsockname()
        user = parts.netloc.rpartition("@")[0]
        place = f"127.0.0.1:{self._address[1]}"
        self.url = urlunsplit(parts._replace(netloc=f"{user}@{place}" if user else place))
        self._closed = False
        self._cut = False
        self._silent = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """Break all connections, and let no new ones be."""
        self._cut = True

    def fall_silent(self) -> None:
        """Take whatever comes, and pass nothing on."""
        self._silent = True

    def mend(self) -> None:
        """Work again; what was open in a silence is broken, as a restarted server would."""
        self._silent = self._cut = False

    def close(self) -> None:
        """End it."""
        self._closed = True
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            if not select.select([self._listener], [], [], PATIENCE_S)[0]:
                continue
            here, _ = self._listener.accept()
            if self._cut:
                here.close()
                continue
            thread = threading.Thread(target=self._serve, args=(here,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, here: socket.socket) -> None:
        with here, contextlib.suppress(OSError), socket.create_connection(self._there) as there:
            was_silent = False
            while not (self._closed or self._cut or (was_silent and not self._silent)):
                was_silent = self._silent
                for ready in select.select([here, there], [], [], PATIENCE_S)[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    if not self._silent:
                        (there if ready is here else here).sendall(data)
