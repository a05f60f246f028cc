"""The synchronous host: a call that is waited for, or whose output is streamed as it comes."""

from base64 import b64encode
from typing import Any

import msgspec
from litestar.types import Scope

from gateway.contract.events import ImageDelta, TextDelta
from gateway.contract.tasks import Task
from gateway.errors import FaregateError
from gateway.flow.authenticate import identify
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers
from gateway.http.dialect import Dialect
from gateway.http.endpoint import Answers, Deltas, Desk, Exchange, Shape, Writer
from gateway.http.errors import Headers
from gateway.http.fal.calls import in_fals_words, read_call
from gateway.http.fal.errors import fal_body
from gateway.http.fal.names import named
from gateway.http.fal.views import PROMPT_NOTE, billable_units, made_of_answer, result_of
from gateway.http.parts import Part
from gateway.http.raw import read_body
from gateway.media.addresses import Addresses

STREAM = "stream"
"""The last part of a path whose output is to be streamed."""
_encode = msgspec.json.encode


class Renders:
    """Renders errors of this family."""

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        return fal_body(error)


class Run(Answers):
    """Serves `POST /fal/run/{owner}/{app}[/{path}][/stream]`."""

    def __init__(self, dialect: Dialect, desk: Desk) -> None:
        super().__init__(Renders(), desk)
        self._dialect = dialect
        self._most_bytes = desk.most_bytes

    async def run(self, scope: Scope, exchange: Exchange, parts: list[str]) -> None:
        """Serve one call."""
        dialect, head = self._dialect, exchange.head
        await identify(dialect.way.keyring, head.secret)
        raw = await read_body(exchange.receive, head, self._most_bytes)
        stream = len(parts) > 1 and parts[-1] == STREAM
        found = named(dialect.names, dialect.way.snapshot(), parts[:-1] if stream else parts)
        read = read_call(dialect, exchange, scope, raw, found)
        call = msgspec.structs.replace(read.call, mode="stream" if stream else "wait")
        shape = RunShape(stream, dialect.addresses, found.model.tasks, call.notes.get(PROMPT_NOTE, ""))
        try:
            await self._answer(exchange, call, shape)
        except FaregateError as error:
            raise in_fals_words(error, read) from None

    async def _wait(self, exchange: Exchange, placed: Placed, shape: Shape) -> None:
        assert isinstance(shape, RunShape)
        shape.task = placed.enqueued.admitted.routed.quoted.resolved.task
        await super()._wait(exchange, placed, shape)


class RunShape:
    """How the output is written: at once, or an event for each piece of it."""

    def __init__(self, stream: bool, addresses: Addresses, tasks: tuple[Task, ...], prompt: str) -> None:
        self.stream = stream
        self._addresses = addresses
        self.task = tasks[0]
        self._prompt = prompt

    def whole(self, answer: Answer) -> tuple[Headers, list[Part]]:
        """Write a whole answer."""
        told = answer.id.encode()
        headers = [
            *answer_headers(answer),
            (b"x-fal-request-id", told),
            (b"x-fal-billable-units", billable_units(answer.units).encode()),
            (b"content-type", b"application/json"),
        ]
        return headers, [_encode(self.result(answer))]

    def writer(self, placed: Placed) -> Writer:
        """Begin a stream."""
        self.task = placed.enqueued.admitted.routed.quoted.resolved.task
        return RunEvents(self)

    def result(self, answer: Answer) -> dict[str, Any]:
        """Show the output as the queue does."""
        return result_of(made_of_answer(answer, self.task, self._prompt), self._addresses)


class RunEvents:
    """Writes events: the text so far and `partial`, previews of images as data URLs, and the result at the end."""

    content_type = b"text/event-stream; charset=utf-8"

    def __init__(self, shape: RunShape) -> None:
        self._shape = shape
        self._text = ""
        self._reasoning = ""

    def deltas(self, deltas: Deltas) -> bytes:
        """Write what has come as one event for text, and one for each preview of an image."""
        events: list[dict[str, Any]] = []
        spoke = False
        for delta in deltas:
            if isinstance(delta, TextDelta) and delta.choice == 0:
                self._text += delta.text
                self._reasoning += delta.reasoning or ""
                spoke = True
            elif isinstance(delta, ImageDelta):
                url = f"data:{delta.media_type};base64,{b64encode(delta.data).decode()}"
                events.append({"images": [{"url": url, "content_type": delta.media_type}], "partial": True})
        if spoke:
            events.append({"output": self._text, "partial": True, "error": None, "reasoning": self._reasoning or None})
        return b"".join([b"data: " + _encode(event) + b"\n\n" for event in events])

    def end(self, answer: Answer) -> bytes:
        """Write the whole result."""
        return b"data: " + _encode(self._shape.result(answer)) + b"\n\n"

    def broken(self, error: FaregateError) -> bytes:
        """Write an error event."""
        return b"event: error\ndata: " + _encode(fal_body(error)) + b"\n\n"
