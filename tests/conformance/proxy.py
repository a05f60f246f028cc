"""A TCP proxy before Redis that can swallow answers and cut connections, as networks do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """Passes bytes both ways until told otherwise."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.deaf = False
        """Whether answers are swallowed."""
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, commands = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        self._writers |= {writer, commands}
        for source, sink, answering in ((reader, commands, False), (answers, writer, True)):
            task = asyncio.ensure_future(self._pass(source, sink, answering))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, answering: bool) -> None:
        try:
            while data := await source.read(65536):
                if not (answering and self.deaf):
                    sink.write(data)
        except ConnectionError:
            pass
        sink.close()

    def cut(self) -> None:
        """Cut all connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        """Listen for the length of a block."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        user = self._parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"))
        yield self
        server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
