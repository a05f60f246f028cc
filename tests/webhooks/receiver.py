"""A receiver of webhooks: a real server that does well, or whatever a receiver may do wrong."""

import asyncio
import base64
import hashlib
import hmac
import time
from typing import Any, Self

import msgspec

TOLERANCE_S = 300


class Post(msgspec.Struct, frozen=True):
    """A call that came in."""

    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = msgspec.json.decode(self.body)
        return told


class Receiver:
    """Listens on a port of its own. `answers` are given one after the other, the last one for ever.

    A number is a status; `slow` answers nothing; `garbage` is no HTTP; `long` answers 200 with a body without an end;
    an address is redirected to.
    """

    def __init__(self, *answers: int | str) -> None:
        self.answers = answers or (200,)
        self.posts: list[Post] = []
        self.connections = 0
        self._open: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?for=me"

    @property
    def ids(self) -> list[str]:
        return [post.id for post in self.posts]

    async def until(self, count: int, within_s: float = 90.0) -> list[Post]:
        """Wait for so many calls."""
        async with asyncio.timeout(within_s):
            while len(self.posts) < count:
                await asyncio.sleep(0.01)
        return self.posts

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        try:
            await self._receive(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        answer = self.answers[min(len(self.posts), len(self.answers) - 1)]
        self.posts.append(Post(first.split()[1], headers, body, time.time()))
        if answer == "slow":
            await asyncio.sleep(3600)
        elif answer == "garbage":
            writer.write(b"\x00\xff this is no HTTP\r\n" * 10)
        elif answer == "long":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
        elif isinstance(answer, str):
            writer.write(f"HTTP/1.1 302 Found\r\nlocation: {answer}\r\ncontent-length: 0\r\n\r\n".encode())
        else:
            writer.write(b"HTTP/1.1 %d Whatever\r\ncontent-length: 0\r\n\r\n" % answer)
        await writer.drain()


def verify(secret: str, post: Post) -> bool:
    """Check a signature as the Standard Webhooks specification describes it to receivers; nothing here is ours."""
    assert secret.startswith("whsec_")
    key = base64.b64decode(secret[6:])
    timestamp = post.headers["webhook-timestamp"]
    assert abs(post.at_s - int(timestamp)) <= TOLERANCE_S
    signed = post.headers["webhook-id"] + "." + timestamp + "." + post.body.decode("utf-8")
    expected = base64.b64encode(hmac.new(key, signed.encode("utf-8"), hashlib.sha256).digest()).decode()
    for versioned in post.headers["webhook-signature"].split(" "):
        version, _, signature = versioned.partition(",")
        if version == "v1" and hmac.compare_digest(signature, expected):
            return True
    return False
