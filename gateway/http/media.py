"""What the endpoints for media share: bodies as JSON or as forms with files, and answers that may come later.

A call waits up to the setting `media_wait_s`, or as long as its `Prefer: wait=n` says; then it is answered 202 with the
id of its request, which goes on and can be read by `GET /v1/requests/{id}`.
"""

import asyncio
from typing import Any, ClassVar, Protocol

import msgspec
from litestar.types import Receive, Scope, Send

from gateway.errors import FaregateError
from gateway.flow.authenticate import identify
from gateway.flow.call import Call
from gateway.flow.way import Placed
from gateway.http.endpoint import Answers, Desk, Exchange, Shape
from gateway.http.errors import openai_body
from gateway.http.incoming import Incoming
from gateway.http.multipart import read_media_form
from gateway.http.native.submit import accepted_headers, wait_s
from gateway.http.native.views import accepted_view
from gateway.http.openai.extra import decode_open
from gateway.http.openai.forms import body_of
from gateway.http.openai.parse import Received
from gateway.http.raw import Head, read_body, read_head, send_json
from gateway.media.inlet import Intake


class MediaFamily(Protocol):
    """One endpoint whose body may be a form."""

    path: ClassVar[str]
    body: ClassVar[type[msgspec.Struct]]
    files: ClassVar[dict[str, str]] = {}
    """The names of file parts in a form, and the fields of the body that they stand for; none takes JSON alone."""

    def read(self, received: Received, asked: Any) -> tuple[Call, Shape]:
        """Make the call of a decoded body. Raises FaregateError."""
        ...

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        return openai_body(error)


class MediaReader:
    """Reads the calls of one media family."""

    def __init__(self, family: MediaFamily, desk: Desk) -> None:
        self._family = family
        self._decoder = msgspec.json.Decoder(family.body)
        self._keyring = desk.way.keyring
        self._inlet = desk.inlet
        self._most_bytes = desk.most_bytes

    async def read(self, head: Head, scope: Scope, receive: Receive) -> tuple[Call, Shape]:
        """Read one call; files that came with it lie in the store then. Raises FaregateError, and leaves none."""
        await identify(self._keyring, head.secret)  # before anything of a stranger is kept
        intake = self._inlet.open()
        try:
            asked, raw = await self._asked(head, scope, receive, intake)
            call, shape = self._family.read(Received(head, scope, raw), asked)
        except BaseException:
            await intake.discard()
            raise
        return msgspec.structs.replace(call, intake=intake), shape

    async def _asked(self, head: Head, scope: Scope, receive: Receive, intake: Intake) -> tuple[Any, bytes]:
        """Read the body: decoded, and the bytes that stand for it when repeats are compared."""
        files = self._family.files
        if not (files and is_form(scope)):
            raw = await read_body(receive, head, self._most_bytes)
            return decode_open(self._decoder, raw), raw
        incoming = Incoming(receive)
        try:
            form = await read_media_form(scope, incoming, intake, files)
        except FaregateError as error:
            error.hangs_up = not await incoming.drained()
            raise
        return body_of(form, self._family.body, files), form.digest


class MediaEndpoint(Answers):
    """Serves one media family's endpoint."""

    def __init__(self, family: MediaFamily, desk: Desk) -> None:
        super().__init__(family, desk)
        self._reader = MediaReader(family, desk)
        self._wait_s = desk.media_wait_s

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = read_head(scope)
        call, shape = await self._reader.read(head, scope, receive)
        await self._answer(Exchange(head, receive, send), call, shape)

    async def _wait(self, exchange: Exchange, placed: Placed, shape: Shape) -> None:
        """Wait as long as the caller may; a request that is kept goes on when the waiting ends."""
        most_s = None
        if placed.enqueued.admitted.keep:
            most_s = min(wait_s(exchange.head.prefer) or self._wait_s, self._wait_s)
        try:
            answer = await asyncio.wait_for(self._way.answer(placed), most_s)
        except TimeoutError:
            view = await self._watch.accepted(placed)
            body = {"object": "request", "created": view.created_us // 1_000_000} | accepted_view(view)
            await send_json(exchange.send, 202, accepted_headers(view.id), body)
            return
        self._metrics.answered(answer.model, answer.total_us, answer.charge_nanos)
        await self._send_whole(exchange.send, shape, answer)


def is_form(scope: Scope) -> bool:
    """Say whether a body comes as a form."""
    kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return kind.lower().startswith(b"multipart/form-data")
