"""What all hot endpoints share: read the call, take it through the way, answer or stream, and watch the caller."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
from litestar.types import Receive, Scope, Send

from gateway.blobs.store import BlobStore
from gateway.contract.events import Delta, MediaOutput
from gateway.errors import FaregateError, InvalidRequest
from gateway.flow.call import Call
from gateway.flow.respond import Answer, respond
from gateway.flow.watch import Watch
from gateway.flow.way import Placed, Way
from gateway.http.answers import stream_headers
from gateway.http.departures import Departures
from gateway.http.errors import Headers, told
from gateway.http.parts import Body, send_parts, send_pieces, written
from gateway.http.raw import Head, read_body, read_head, send_blob, send_bytes, send_error
from gateway.ledger.admission import Replay
from gateway.media.addresses import Addresses
from gateway.media.inlet import Inlet
from gateway.metrics import Metrics

AsgiHandler = Callable[[Scope, Receive, Send], Awaitable[None]]
Deltas = list[Delta]


class Writer(Protocol):
    """Writes one stream in a family's form. It lives as long as its answer."""

    content_type: bytes

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas."""
        ...

    def end(self, answer: Answer) -> Body:
        """Write the end, with usage and charge."""
        ...

    def broken(self, error: FaregateError) -> bytes | None:
        """Write that the stream breaks off here; None where only a broken connection can say so."""
        ...


class Shape(Protocol):
    """How one caller wants the answer."""

    stream: bool

    def whole(self, answer: Answer) -> tuple[Headers, Body]:
        """Write a whole answer: its own headers, and its body."""
        ...

    def writer(self, placed: Placed) -> Writer:
        """Begin a stream."""
        ...


class Family(Protocol):
    """One endpoint of an API family."""

    path: str

    def read(self, head: Head, scope: Scope, body: bytes) -> tuple[Call, Shape]:
        """Parse a call. Raises FaregateError."""
        ...

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        ...


class Desk(msgspec.Struct, frozen=True):
    """What every endpoint works with."""

    way: Way
    watch: Watch
    departures: Departures
    metrics: Metrics
    blobs: BlobStore
    inlet: Inlet
    addresses: Addresses
    most_bytes: int
    media_wait_s: float


class Exchange(msgspec.Struct, frozen=True):
    """One HTTP exchange: what its headers say, where the caller is heard, where the answer goes."""

    head: Head
    receive: Receive
    send: Send


class Renders(Protocol):
    """Renders errors as a family's callers expect them."""

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        ...


class Answers:
    """Serves one endpoint as a bare ASGI handler; how a call is read is the business of those that inherit."""

    def __init__(self, renders: Renders, desk: Desk) -> None:
        self._renders = renders
        self._way = desk.way
        self._watch = desk.watch
        self._departures = desk.departures
        self._metrics = desk.metrics
        self._blobs = desk.blobs

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        try:
            if scope["method"] != "POST":  # type: ignore[typeddict-item]
                await send_bytes(send, 405, [(b"allow", b"POST")], b"")
                return
            await self._serve(scope, receive, send)
        except Exception as error:
            refusal = told(error, scope["path"])
            self._metrics.refused(refusal.code)
            await send_error(send, refusal, self._renders.error(refusal))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read one call, and `_answer` it."""
        raise AssertionError("an endpoint reads its own calls")

    async def _answer(self, exchange: Exchange, call: Call, shape: Shape) -> None:
        """Take the call through the way, and answer it."""
        send = exchange.send
        placed = await self._way.submit(call)
        if isinstance(placed, Replay):
            await self._send_whole(send, shape, await self._replayed(call, placed, shape))
            return
        assert placed.box is not None
        self._departures.watch(placed, exchange.receive)
        if shape.stream:
            await self._stream(send, placed, shape.writer(placed))
        else:
            await self._wait(exchange, placed, shape)

    async def _wait(self, exchange: Exchange, placed: Placed, shape: Shape) -> None:
        """Wait for the end, and answer with it."""
        answer = await self._way.answer(placed)
        self._metrics.answered(answer.model, answer.total_us, answer.charge_nanos)
        await self._send_whole(exchange.send, shape, answer)

    async def _replayed(self, call: Call, replay: Replay, shape: Shape) -> Answer:
        if shape.stream:
            raise InvalidRequest(
                "A repeated call cannot be streamed again; GET its request, or repeat it without stream.",
                code="replay_not_streamable",
                request_id=replay.request_id,
            )
        return await self._watch.answer_of(call.secret, replay.request_id)

    async def _stream(self, send: Send, placed: Placed, writer: Writer) -> None:
        """Send deltas as they come, and the end after its charge has committed.

        A fault before the first byte is a plain error; after it, the writer says that the stream breaks off.
        """
        box = placed.box
        assert box is not None
        try:
            deltas = await box.more()
            if not deltas:
                respond(await box.finished(), 0)
            headers = [(b"content-type", writer.content_type), *stream_headers(placed)]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while deltas:
                await send({"type": "http.response.body", "body": writer.deltas(deltas), "more_body": True})
                deltas = await box.more()
            last = await self._last(placed, writer)
            if isinstance(last, list):
                await send_pieces(send, written(last, self._blobs))
            elif last is not None:
                await send({"type": "http.response.body", "body": last, "more_body": False})
        finally:
            self._way.close(placed)

    async def _last(self, placed: Placed, writer: Writer) -> Body | None:
        box = placed.box
        assert box is not None
        try:
            answer = respond(await box.finished(), self._way.age_us(placed))
        except FaregateError as error:
            self._metrics.refused(error.code)
            return writer.broken(error)
        self._metrics.answered(answer.model, answer.total_us, answer.charge_nanos)
        return writer.end(answer)

    async def _send_whole(self, send: Send, shape: Shape, answer: Answer) -> None:
        headers, body = shape.whole(answer)
        output = answer.output
        if isinstance(body, list):
            await send_parts(send, headers, body, self._blobs)
        elif isinstance(output, MediaOutput) and output.blob:
            await send_blob(send, headers, self._blobs, output.blob)
        else:
            await send_bytes(send, 200, headers, body)


class Endpoint(Answers):
    """Serves the endpoint of a family whose bodies are JSON and small."""

    def __init__(self, family: Family, desk: Desk) -> None:
        super().__init__(family, desk)
        self._read = family.read
        self._most_bytes = desk.most_bytes

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = read_head(scope)
        call, shape = self._read(head, scope, await read_body(receive, head, self._most_bytes))
        await self._answer(Exchange(head, receive, send), call, shape)
