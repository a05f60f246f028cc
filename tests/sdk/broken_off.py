"""A caller who hangs up while a call waits for its admission, and comes again."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import httpx
import msgspec


class Barred(msgspec.Struct, frozen=True):
    """An account of which nothing is admitted."""

    waited_for: threading.Event
    """Whether somebody waits for it."""
    left: threading.Event
    """Whether its caller has hung up: soon afterwards it is no longer barred."""


class Forgetful(httpx.HTTPTransport):
    """Hangs up on the first call of a client while it waits for its admission, as a time-out does."""

    def __init__(self, port: int, barred: Barred) -> None:
        super().__init__()
        self._port = port
        self._barred = barred
        self.cut = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.cut or request.method != "POST":
            return super().handle_request(request)
        self.cut += 1
        with socket.create_connection(("127.0.0.1", self._port)) as there:
            head = [f"POST {request.url.raw_path.decode()} HTTP/1.1", "host: here"]
            head += [f"{name}: {value}" for name, value in request.headers.items() if name != "host"]
            there.sendall("\r\n".join([*head, "", ""]).encode() + request.read())
            assert self._barred.waited_for.wait(60)
        self._barred.left.set()
        raise httpx.ReadTimeout("no answer", request=request)


@contextmanager
def no_admission(database_url: str, account: int) -> Iterator[Barred]:
    """Let nothing of an account be admitted until its caller has left."""
    barred, locked_now = Barred(threading.Event(), threading.Event()), threading.Event()
    waiters = "select count(*) from pg_locks where not granted and transactionid = pg_current_xact_id()::xid"

    async def lock() -> None:
        connection = await asyncpg.connect(database_url)
        try:
            async with connection.transaction():
                await connection.execute("select from account where id = $1 for update", account)
                locked_now.set()
                while not barred.left.is_set():
                    if await connection.fetchval(waiters):
                        barred.waited_for.set()
                    await asyncio.sleep(0.02)
                await asyncio.sleep(0.5)  # the gateway hears of it
        finally:
            await connection.close()

    thread = threading.Thread(target=asyncio.run, args=(lock(),))
    thread.start()
    assert locked_now.wait(60)
    try:
        yield barred
    finally:
        barred.left.set()
        thread.join()
