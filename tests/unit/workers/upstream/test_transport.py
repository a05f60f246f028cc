"""The transport below httpx, against a server that says exactly what it is told to."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from workers.engine import EngineError
from workers.engines.upstream import connection
from workers.engines.upstream.transport import KeptBody, KeptTransport, Limits, encoded, origin_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
READ_S = 60.0
SOON_S = 0.5
"""How long an answer may take that does not come."""


class Server:
    """Answers each request with the next of what it was given: pieces, `None` closes, a number waits."""

    def __init__(self, *answers: Sequence[bytes | float | None]) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0)
                self.requests.append(head + await reader.readexactly(size))
                for piece in self.answers.pop(0):
                    if piece is None:
                        return
                    if isinstance(piece, float):
                        await asyncio.sleep(piece)
                        continue
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed += 1
            writer.close()


@asynccontextmanager
async def serving(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[KeptTransport]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    server.url = f"{scheme}://localhost:{listener.sockets[0].getsockname()[1]}/v1/x"
    transport = KeptTransport()
    try:
        yield transport
    finally:
        await transport.aclose()
        listener.close()
        await asyncio.sleep(0.05)


async def send(
    transport: KeptTransport, request: httpx.Request, *, fresh: bool = False, read_s: float = READ_S
) -> tuple[int, KeptBody]:
    """Send a request; answers the status, and the body that is still to come."""
    origin = origin_of(request.url)
    answer = await transport.exchange(origin, encoded(request), Limits(READ_S, read_s, fresh))
    return answer.status, KeptBody(transport, origin, answer, read_s)


async def ask(
    transport: KeptTransport, server: Server, *, fresh: bool = False, read_s: float = READ_S
) -> tuple[int, bytes]:
    request = httpx.Request("POST", server.url, content=b"hi")
    status, body = await send(transport, request, fresh=fresh, read_s=read_s)
    try:
        return status, b"".join([piece async for piece in body])
    finally:
        await body.aclose()


async def test_a_connection_is_kept_and_a_request_is_written_whole() -> None:
    server = Server(
        [OK], [b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"1\r\nd\r\n0\r\n\r\n"]
    )
    async with serving(server) as transport:
        assert await ask(transport, server) == (200, b"ok")
        assert await ask(transport, server) == (404, b"abcd")
    assert server.connections == 1
    assert server.requests[0].startswith(b"POST /v1/x HTTP/1.1\r\nHost: localhost:")
    assert server.requests[0].endswith(b"Content-Length: 2\r\n\r\nhi")


async def test_a_call_that_nobody_read_goes_over_a_new_connection_but_a_purchase_never_over_a_kept_one() -> None:
    server = Server([OK, None], [OK], [OK])
    async with serving(server) as transport:
        await ask(transport, server)
        assert await ask(transport, server) == (200, b"ok")
        assert server.connections == 2
        assert await ask(transport, server, fresh=True) == (200, b"ok")
        assert server.connections == 3


async def test_an_answer_that_breaks_off_is_an_error_and_not_asked_for_again() -> None:
    server = Server([OK], [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", None], [b"HTTP/1.1 200 OK\r\n", None])
    async with serving(server) as transport:
        await ask(transport, server)
        for _ in range(2):
            with pytest.raises(httpx.RemoteProtocolError):
                await ask(transport, server)
    assert len(server.requests) == 3


async def test_a_body_of_unknown_length_ends_with_its_connection() -> None:
    server = Server([b"HTTP/1.1 200 OK\r\n\r\nall of it", None], [OK])
    async with serving(server) as transport:
        assert await ask(transport, server) == (200, b"all of it")
        await ask(transport, server)
    assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ([b"SSH-2.0-server\r\n"], httpx.RemoteProtocolError),
        ([b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000], httpx.RemoteProtocolError),
        ([5.0], httpx.ReadTimeout),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 5.0], httpx.ReadTimeout),
    ],
)
async def test_what_is_no_answer_or_does_not_come_is_an_error(
    answer: list[bytes | float | None], error: type[Exception]
) -> None:
    server = Server(answer)
    async with serving(server) as transport:
        with pytest.raises(error):
            await ask(transport, server, read_s=SOON_S if error is httpx.ReadTimeout else READ_S)


async def test_interim_answers_are_passed_over() -> None:
    server = Server([b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK])
    async with serving(server) as transport:
        assert await ask(transport, server) == (200, b"ok")


async def test_leaving_a_stream_early_closes_its_connection() -> None:
    drip: list[bytes | float | None] = [b"1\r\nx\r\n", 0.01]
    server = Server([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *drip * 500])
    async with serving(server) as transport:
        _, body = await send(transport, httpx.Request("POST", server.url))
        async for _ in body:
            break
        await body.aclose()
        async with asyncio.timeout(READ_S):
            while not server.closed:
                await asyncio.sleep(0.01)
        assert server.closed == 1


async def test_a_reader_who_is_slow_is_not_sent_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HIGH_WATER", 100_000)
    size = 50_000_000
    server = Server([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, *[b"x" * 1_000_000] * 50])
    async with serving(server) as transport:
        _, body = await send(transport, httpx.Request("POST", server.url))
        await asyncio.sleep(0.3)
        total, most = 0, 0
        async for piece in body:
            total, most = total + len(piece), max(most, len(piece))
        await body.aclose()
    assert total == size
    assert most < 2_000_000


async def test_a_line_break_in_a_header_is_not_sent() -> None:
    server = Server([OK])
    async with serving(server) as transport:
        request = httpx.Request("POST", server.url, headers=[(b"x", b"a\r\nHost: other")])
        with pytest.raises(httpx.LocalProtocolError):
            await send(transport, request)
    assert server.requests == []


async def test_nobody_at_home_is_a_connect_error() -> None:
    server = Server()
    async with serving(server) as transport:
        server.url = "http://127.0.0.1:9/x"
        with pytest.raises(httpx.ConnectError):
            await ask(transport, server)


def certificate(folder: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate of its own for a name; answers its file, and a server's context."""
    key, made = folder / "key.pem", folder / "cert.pem"
    asked = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={name}"
    more = ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(made)]
    subprocess.run(["openssl", *asked.split(), *more], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return made, context


@pytest.mark.parametrize(
    ("name", "trusted", "fine"), [("localhost", True, True), ("localhost", False, False), ("other", True, False)]
)
async def test_certificates_are_held_against_their_name_and_whom_one_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, trusted: bool, fine: bool
) -> None:
    made, context = certificate(tmp_path, name)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(made))
    server = Server([OK], [OK])
    async with serving(server, context) as transport:
        if fine:
            assert await ask(transport, server) == (200, b"ok")
            assert await ask(transport, server) == (200, b"ok")
            assert server.connections == 1
        else:
            with pytest.raises(httpx.ConnectError):
                await ask(transport, server)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@asynccontextmanager
async def begun(server: Server) -> AsyncIterator[connection.Connection]:
    """Send a request, and give the connection on which its answer has begun."""
    async with serving(server) as transport:
        request = httpx.Request("POST", server.url, content=b"hi")
        yield await transport.exchange(origin_of(request.url), encoded(request), Limits(READ_S, READ_S))


async def test_a_sink_gets_every_piece_in_order_and_says_when_it_has_enough() -> None:
    pieces: list[bytes | float | None] = [chunk(b"one"), chunk(b"two"), 0.05, chunk(b"three"), 0.05, chunk(b"four")]
    came: list[bytes] = []

    def sink(piece: bytes) -> bool:
        came.append(piece)
        return piece == b"three"

    async with begun(Server([CHUNKED, *pieces, 0.1, b"0\r\n\r\n"])) as answer:
        await answer.drain(sink, READ_S)
        assert came == [b"one", b"two", b"three"]
        assert answer.open


async def test_a_sink_hears_of_the_end_of_a_silence_and_of_a_break() -> None:
    def sink(piece: bytes) -> bool:
        return False

    async with begun(Server([CHUNKED, chunk(b"a"), b"0\r\n\r\n"])) as answer:
        await answer.drain(sink, READ_S)
        assert answer.complete
    async with begun(Server([CHUNKED, chunk(b"a"), 5.0])) as answer:
        with pytest.raises(httpx.ReadTimeout):
            await answer.drain(sink, 0.2)
    async with begun(Server([CHUNKED, chunk(b"a"), 0.05, None])) as answer:
        with pytest.raises(httpx.RemoteProtocolError):
            await answer.drain(sink, READ_S)


async def test_a_stream_longer_than_its_time_out_goes_on_while_pieces_come() -> None:
    drip: list[bytes | float | None] = [chunk(b"x"), 0.15]
    came: list[bytes] = []
    async with begun(Server([CHUNKED, *drip * 8, b"0\r\n\r\n"])) as answer:
        await answer.drain(lambda piece: bool(came.append(piece)), 1.0)
    assert came == [b"x"] * 8


async def test_what_a_sink_raises_ends_the_answer() -> None:
    def sink(piece: bytes) -> bool:
        raise EngineError(piece.decode())

    async with begun(Server([CHUNKED, 0.05, chunk(b"bad"), chunk(b"more"), 5.0])) as answer:
        with pytest.raises(EngineError, match="bad"):
            await answer.drain(sink, READ_S)
        assert not answer.open


@pytest.mark.parametrize("pause_s", [0.0, 0.05], ids=["with its head", "after its head"])
async def test_a_whole_answer_has_its_limit(pause_s: float) -> None:
    long: list[bytes | float | None] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n",
        pause_s,
        b"x" * 1500,
        0.05,
        b"x" * 1500,
    ]
    async with begun(Server(long)) as answer:
        assert await answer.whole(READ_S, 3000) == b"x" * 3000
    async with begun(Server(long)) as answer:
        with pytest.raises(connection.TooLong):
            await answer.whole(READ_S, 2999)


async def test_a_whole_answer_that_was_held_back_before_it_was_asked_for_comes_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "HIGH_WATER", 1_000)
    size = 10_000_000
    server = Server([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, *[b"x" * 1_000_000] * 10])
    async with begun(server) as answer:
        await asyncio.sleep(0.2)
        assert len(await answer.whole(READ_S, size)) == size
