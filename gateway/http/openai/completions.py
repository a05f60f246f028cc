"""`POST /v1/completions`."""

from typing import Any

import msgspec
from litestar.types import Scope

from gateway.contract.events import Choice, TextDelta, TextOutput
from gateway.contract.inputs import CompletionInput
from gateway.errors import FaregateError
from gateway.flow.call import Call
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers
from gateway.http.endpoint import Deltas
from gateway.http.errors import Headers, openai_body
from gateway.http.openai.bodies import CompletionBody, input_of
from gateway.http.openai.extra import decode_open
from gateway.http.openai.logprobs import completion_logprobs
from gateway.http.openai.parse import Received, call_of
from gateway.http.openai.stream import TextWriter
from gateway.http.openai.usage import text_usage
from gateway.http.raw import Head

_DECODER = msgspec.json.Decoder(CompletionBody)
_encode = msgspec.json.encode


class CompletionFamily:
    """Text completions."""

    path = "/v1/completions"

    def read(self, head: Head, scope: Scope, body: bytes) -> tuple[Call, "CompletionShape"]:
        """Parse a call."""
        asked = decode_open(_DECODER, body)
        stream = bool(asked.stream)
        value = input_of(asked, CompletionInput)
        call = call_of(Received(head, scope, body), asked, "completion", value, stream=stream)
        return call, CompletionShape(stream, bool(asked.stream_options and asked.stream_options.include_usage))

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        return openai_body(error)


class CompletionShape:
    """Whether to stream, and whether the usage comes in a chunk of its own."""

    def __init__(self, stream: bool, include_usage: bool) -> None:
        self.stream = stream
        self._include_usage = include_usage

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Write a whole answer."""
        choices = answer.output.choices if isinstance(answer.output, TextOutput) else []
        body = {
            "id": answer.id,
            "object": "text_completion",
            "created": answer.created_s,
            "model": answer.model,
            "choices": [_choice(index, choice) for index, choice in enumerate(choices)],
            "usage": text_usage(answer),
        }
        return [*answer_headers(answer), (b"content-type", b"application/json")], _encode(body)

    def writer(self, placed: Placed) -> "CompletionWriter":
        """Begin a stream."""
        return CompletionWriter(placed, self._include_usage)


class CompletionWriter(TextWriter):
    """Writes `text_completion` events."""

    kind = "text_completion"

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas; a finish waits for the charge."""
        parts: list[bytes] = []
        for delta in deltas:
            if not isinstance(delta, TextDelta):
                continue
            self.note_finish(delta)
            if delta.text or delta.logprobs:
                logprobs = b',"logprobs":' + _encode(completion_logprobs(delta.logprobs)) if delta.logprobs else b""
                parts.append(self.chunk(delta.choice, b'"text":' + _encode(delta.text) + logprobs))
        return b"".join(parts)


def _choice(index: int, choice: Choice) -> dict[str, Any]:
    logprobs = completion_logprobs(choice.logprobs) if choice.logprobs is not None else None
    return {"index": index, "text": choice.text, "logprobs": logprobs, "finish_reason": choice.finish_reason}
