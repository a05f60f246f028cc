"""Forms that are too much, broken, or never end: refused, in little memory, and nothing of them is left."""

import asyncio
import os
import time
from typing import Any

import psutil
import pytest

from gateway.errors import FaregateError, InvalidRequest, TooLarge
from gateway.http import multipart
from gateway.http.multipart import Form, Part, read_form
from tests.media.samples import picture
from tests.system import System

SCOPE: Any = {"type": "http", "headers": [(b"content-type", b"multipart/form-data; boundary=X")]}


def a_part(name: str, value: bytes, filename: str | None = None) -> bytes:
    file = "" if filename is None else f'; filename="{filename}"'
    return f'--X\r\ncontent-disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + value + b"\r\n"


class Wire:
    """A body that comes in pieces, as a server hands them on."""

    def __init__(self, body: bytes, each: int = 65536, end: bytes = b"--X--\r\n") -> None:
        data = body + end
        self.pieces = [data[at : at + each] for at in range(0, len(data), each)]
        self.read = 0

    async def __call__(self) -> Any:
        if self.read == len(self.pieces):
            return {"type": "http.disconnect"}
        self.read += 1
        more = self.read < len(self.pieces)
        return {"type": "http.request", "body": self.pieces[self.read - 1], "more_body": more}


async def whole(part: Part) -> bytes:
    return b"".join([piece async for piece in part.pieces])


async def read(wire: Any, most_bytes: int = 10**9, scope: Any = SCOPE) -> Form[bytes]:
    return await read_form(scope, wire, whole, most_bytes)


@pytest.mark.parametrize("each", [1, 7, 64, 65536])
async def test_a_form_is_read_whatever_pieces_it_comes_in(each: int) -> None:
    data = os.urandom(3000) + b"\r\n--Y\r\n--"
    body = a_part("a", "ü".encode()) + a_part("file", data, "f.bin") + a_part("a", b"two") + a_part("file", b"", "g")
    form = await read(Wire(body, each))
    assert form.fields == [("a", "ü"), ("a", "two")]
    assert form.text("a") == "two"
    assert form.text("b") is None
    assert form.files == [("file", data), ("file", b"")]


async def test_the_digest_is_of_what_is_said_and_not_of_how() -> None:
    body = a_part("a", b"1") + a_part("file", b"data", "f")
    same = [(await read(Wire(body, each))).digest for each in (5, 4096)]
    scope = {"headers": [(b"content-type", b'multipart/form-data; boundary="Other"')]}
    same.append((await read(Wire(body.replace(b"--X", b"--Other"), end=b"--Other--"), scope=scope)).digest)
    assert len(set(same)) == 1
    others = [a_part("a", b"2") + a_part("file", b"data", "f"), a_part("b", b"1") + a_part("file", b"data", "f"),
              a_part("a", b"1") + a_part("file", b"dat", "f")]  # fmt: skip
    assert len({same[0], *[(await read(Wire(each))).digest for each in others]}) == 4


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"".join(a_part(f"p{number}", b"x") for number in range(100_000)), TooLarge),
        (a_part("a", bytes(2 * 1024 * 1024)), TooLarge),
        (a_part("a" * 10_000, b"x"), TooLarge),
        (b"--X\r\n" + b"x-header: y\r\n" * 1000 + b"\r\n", TooLarge),
        (b"--X\r\ncontent-disposition: form-data\r\n\r\nx\r\n", InvalidRequest),
        (b"--X\nname\n\nx", InvalidRequest),
        (b"no form at all", InvalidRequest),
        (a_part("a", b"\xff\xfe"), InvalidRequest),
        (b"", InvalidRequest),
    ],
)
async def test_a_form_that_is_too_much_or_none_is_refused(body: bytes, kind: type[FaregateError]) -> None:
    with pytest.raises(kind):
        await read(Wire(body, end=b"" if body in (b"", b"no form at all") else b"--X--\r\n"))


async def test_no_more_is_read_of_a_body_than_may_come() -> None:
    wire = Wire(a_part("file", bytes(10_000_000), "f"))
    with pytest.raises(TooLarge):
        await read(wire, most_bytes=1_000_000)
    assert wire.read * 65536 < 1_200_000


async def test_a_caller_who_leaves_or_stands_still_ends_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidRequest):
        await read(Wire(a_part("file", bytes(100_000), "f")[:-50_000], end=b""))
    monkeypatch.setattr(multipart, "IDLE_S", 0.05)

    async def stands_still() -> Any:
        await asyncio.sleep(60)

    with pytest.raises(InvalidRequest):
        await read(stands_still)


@pytest.mark.parametrize(
    "kind", [b"", b"application/json", b"multipart/form-data", b"multipart/form-data; boundary=" + b"x" * 71]
)
async def test_a_body_without_a_proper_boundary_is_no_form(kind: bytes) -> None:
    with pytest.raises(InvalidRequest):
        await read(Wire(b""), scope={"headers": [(b"content-type", kind)]})


def test_a_hundred_thousand_parts_cost_a_gateway_little(taking_system: System) -> None:
    (pid,) = taking_system.pids("gateway")
    before = psutil.Process(pid).memory_info().rss
    body = b"".join(a_part(f"p{number}", b"x" * 10) for number in range(100_000)) + b"--X--\r\n"
    headers = {"content-type": "multipart/form-data; boundary=X"}
    with taking_system.client() as client:
        assert client.post("/v1/files", content=body, headers=headers).status_code == 413
        assert client.get("/v1/files").status_code == 200
    assert psutil.Process(pid).memory_info().rss - before < 50 * 1024 * 1024


def test_a_refused_upload_is_not_waited_for(taking_system: System) -> None:
    """A key that is none is told before its file has come, and the connection is closed."""

    async def send() -> bytes:
        port = int(taking_system.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer nobody\r\ncontent-length: 500000000\r\n"
            b"content-type: multipart/form-data; boundary=X\r\n\r\n" + a_part("file", b"", "f")[:-2] + bytes(100_000)
        )
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        return answer

    answer = asyncio.run(send())
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answer.lower()


def test_a_file_that_breaks_off_leaves_nothing(taking_system: System) -> None:
    blobs = taking_system.data / "blobs"
    before = {path for path in blobs.rglob("*") if path.is_file()}

    async def leave() -> None:
        port = int(taking_system.base_url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {taking_system.api_key}\r\n"
            "content-length: 500000000\r\ncontent-type: multipart/form-data; boundary=X\r\n\r\n".encode()
            + a_part("file", b"", "f")[:-2]
            + picture() * 1000
        )
        await writer.drain()
        await asyncio.sleep(0.3)
        writer.close()

    asyncio.run(leave())
    with taking_system.client() as client:
        assert client.get("/v1/files").status_code == 200
    end = time.monotonic() + 60
    while not {path for path in blobs.rglob("*") if path.is_file()} <= before:
        assert time.monotonic() < end
        time.sleep(0.05)
