"""What chat and completion streams share: one event a delta, the finish only after the charge, then `[DONE]`."""

import msgspec

from gateway.contract.events import TextDelta
from gateway.contract.ids import admitted_ms
from gateway.errors import FaregateError
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.errors import openai_body
from gateway.http.openai.usage import text_usage

_encode = msgspec.json.encode


class TextWriter:
    """Writes text chunks of one request."""

    content_type = b"text/event-stream; charset=utf-8"
    kind = ""

    def __init__(self, placed: Placed, include_usage: bool) -> None:
        self._id = placed.id
        self._call_it(placed.enqueued.admitted.routed.quoted.resolved.model.name)
        self._include_usage = include_usage
        self._finishes: list[tuple[int, str]] = []

    def _call_it(self, model: str) -> None:
        head = {"id": self._id, "object": self.kind, "created": admitted_ms(self._id) // 1000, "model": model}
        self._model, self._head = model, b"data: " + _encode(head)[:-1]

    def chunk(self, choice: int, delta: bytes, finish: bytes = b"null") -> bytes:
        """Write one event of one choice; `delta` is its JSON field."""
        return b'%b,"choices":[{"index":%d,%b,"finish_reason":%b}]}\n\n' % (self._head, choice, delta, finish)

    def note_finish(self, delta: TextDelta) -> None:
        """Keep a finish back until the charge has committed."""
        if delta.finish_reason is not None:
            self._finishes.append((delta.choice, delta.finish_reason))

    def empty(self) -> bytes:
        """Write the delta of a finish."""
        return b'"text":""'

    def end(self, answer: Answer) -> bytes:
        """Write each choice's finish, then the usage.

        In a chunk of its own where asked, else beside the last finish. Which of several models answered is known here.
        """
        if answer.model != self._model:
            self._call_it(answer.model)
        usage = b',"usage":' + _encode(text_usage(answer)) + b"}\n\n"
        finishes = self._finishes or [(0, "stop")]
        parts = [self.chunk(choice, self.empty(), _encode(reason)) for choice, reason in finishes]
        if self._include_usage:
            parts.append(self._head + b',"choices":[]' + usage)
        else:
            parts[-1] = parts[-1][: -len(b"}\n\n")] + usage
        return b"".join([*parts, b"data: [DONE]\n\n"])

    def broken(self, error: FaregateError) -> bytes:
        """Write an error event; no `[DONE]` follows it, so that nobody takes the answer for whole."""
        return b"data: " + _encode(openai_body(error)) + b"\n\n"
