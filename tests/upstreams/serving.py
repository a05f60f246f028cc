"""Servers that stand in for providers: what they were asked, what they answer, and faults on demand.

A stand-in speaks the recorded wire shapes of one provider, over real HTTP on a loopback address, in a thread.
"""

import asyncio
import json
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import uvicorn

from tests.media.samples import film, picture, sound

HOST = "127.0.0.2"
"""A loopback address whose files the tests' workers may copy; those at 127.0.0.1 they may not."""
START_S = 60.0


class Asked(msgspec.Struct):
    """A request that came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Read the body as JSON."""
        return json.loads(self.body)

    def form(self) -> dict[str, tuple[str, bytes, str]]:
        """Read a multipart form: file name, bytes and media type by field."""
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        found: dict[str, tuple[str, bytes, str]] = {}
        for part in BytesParser(policy=HTTP).parsebytes(head + self.body).iter_parts():
            name = str(part.get_param("name", header="content-disposition"))
            data = part.get_payload(decode=True)
            assert isinstance(data, bytes)
            found[name] = (part.get_filename() or "", data, part.get_content_type())
        return found


class Reply(msgspec.Struct):
    """What is answered."""

    status: int = 200
    body: bytes | list[bytes] = b""
    """Pieces are sent one by one; `b"!"` breaks the connection off, `b"~"` waits for ever."""
    media_type: str = "application/json"
    headers: dict[str, str] = {}


def said(value: Any, status: int = 200, **headers: str) -> Reply:
    """Answer JSON."""
    return Reply(status, json.dumps(value).encode(), headers={name.replace("_", "-"): v for name, v in headers.items()})


class StandIn:
    """A provider. `seen` is what it was asked; `faults` are answered first, whatever is asked of `calls`."""

    key = "secret-key-of-the-operator"

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[Asked] = []
        self.faults: deque[Reply] = deque()
        self.fault_on: Callable[[Asked], bool] = lambda asked: True
        self.files: dict[str, Reply] = {
            "/files/picture.png": Reply(body=picture(64, 48), media_type="image/png"),
            "/files/other.png": Reply(body=picture(32, 32), media_type="image/png"),
            "/files/film.mp4": Reply(body=film(16), media_type="video/mp4"),
            "/files/sound.wav": Reply(body=sound("wav", "pcm_s16le", 2), media_type="audio/wav"),
            "/files/sound.mp3": Reply(body=sound("mp3", "libmp3lame", 2), media_type="audio/mpeg"),
        }

    def file(self, name: str) -> str:
        """Give the address of a file."""
        return f"{self.url}/files/{name}"

    def asked(self, method: str, path: str) -> list[Asked]:
        """Give the requests of a method whose paths begin so."""
        return [each for each in self.seen if each.method == method and each.path.startswith(path)]

    def fail(self, *replies: Reply, on: str = "", method: str = "") -> None:
        """Answer so the next times that a path with `on` in it is asked for."""
        self.faults.extend(replies)
        self.fault_on = lambda asked: on in asked.path and method in asked.method

    def authorized(self, asked: Asked) -> bool:
        """Say whether a request brings the key."""
        return asked.headers.get("authorization") == f"Bearer {self.key}"

    def unauthorized(self) -> Reply:
        """Refuse a wrong key."""
        return said({"error": "unauthorized"}, 401)

    async def answer(self, asked: Asked) -> Reply:
        """Answer a request that brings the key."""
        return said({"error": "not found"}, 404)

    async def _reply(self, asked: Asked) -> Reply:
        if (file := self.files.get(asked.path)) is not None and asked.method == "GET":
            return file
        if self.faults and self.fault_on(asked):
            return self.faults.popleft()
        if not self.open(asked) and not self.authorized(asked):
            return self.unauthorized()
        return await self.answer(asked)

    def open(self, asked: Asked) -> bool:
        """Say whether a request needs no key."""
        return False

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one request, as ASGI."""
        pieces = []
        while True:
            message = await receive()
            pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        asked = Asked(
            scope["method"],
            scope["path"],
            dict(parse_qsl(scope["query_string"].decode())),
            {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]},
            b"".join(pieces),
        )
        self.seen.append(asked)
        reply = await self._reply(asked)
        headers = {"content-type": reply.media_type, **reply.headers}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        if isinstance(reply.body, bytes):
            raw.append((b"content-length", str(len(reply.body)).encode()))
        await send({"type": "http.response.start", "status": reply.status, "headers": raw})
        async for piece in _pieces(reply.body):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class _Broken(Exception):
    """A connection is to be broken off."""


async def _pieces(body: bytes | list[bytes]) -> AsyncIterator[bytes]:
    for piece in [body] if isinstance(body, bytes) else body:
        if piece == b"!":
            raise _Broken
        if piece == b"~":
            await asyncio.sleep(3600)
        yield piece
        if isinstance(body, list):
            await asyncio.sleep(0.01)


@contextmanager
def standing(stand_in: StandIn, host: str = HOST) -> Iterator[str]:
    """Run a stand-in for the length of a block; answers its address."""
    listener = socket.create_server((host, 0))
    stand_in.url = f"http://{host}:{listener.getsockname()[1]}"
    config = uvicorn.Config(stand_in, lifespan="off", log_config=None, access_log=False, ws="none", http="httptools",
                            timeout_graceful_shutdown=1)  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until = time.monotonic() + START_S
    while not server.started:
        assert time.monotonic() < until, "the stand-in does not start"
        time.sleep(0.01)
    try:
        yield stand_in.url
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
