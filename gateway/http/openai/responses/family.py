"""`POST /v1/responses`."""

from typing import Any

import msgspec
from litestar.types import Scope

from gateway.errors import FaregateError
from gateway.flow.call import Call
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers
from gateway.http.errors import Headers, openai_body
from gateway.http.openai.extra import decode_open
from gateway.http.openai.parse import Received, call_of
from gateway.http.openai.responses.bodies import DECODER, ResponseBody
from gateway.http.openai.responses.objects import response_object
from gateway.http.openai.responses.stream import ResponseWriter
from gateway.http.openai.responses.turns import chat_of
from gateway.http.raw import Head


class ResponseFamily:
    """Responses."""

    path = "/v1/responses"

    def read(self, head: Head, scope: Scope, body: bytes) -> tuple[Call, "ResponseShape"]:
        """Parse a call."""
        asked = decode_open(DECODER, body)
        stream = bool(asked.stream)
        call = call_of(Received(head, scope, body), asked, "chat", chat_of(asked), stream=stream)
        return call, ResponseShape(asked, stream)

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        return openai_body(error)


class ResponseShape:
    """Whether to stream, and what the answer repeats of the call."""

    def __init__(self, body: ResponseBody, stream: bool) -> None:
        self.stream = stream
        self._body = body

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Write a whole answer."""
        headers = [*answer_headers(answer), (b"content-type", b"application/json")]
        return headers, msgspec.json.encode(response_object(self._body, answer))

    def writer(self, placed: Placed) -> ResponseWriter:
        """Begin a stream."""
        return ResponseWriter(placed, self._body)
