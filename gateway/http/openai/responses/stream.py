"""An answer as the events of a streamed response, each with its number."""

from typing import Any

import msgspec

from gateway.contract.events import Choice, TextDelta, TokenLogprob, ToolCallDelta
from gateway.contract.ids import admitted_ms
from gateway.errors import FaregateError
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.endpoint import Deltas
from gateway.http.openai.responses.bodies import ResponseBody
from gateway.http.openai.responses.objects import (
    call_item,
    finished,
    head,
    message_item,
    reasoning_item,
    text_part,
    token_logprobs,
)

Json = dict[str, Any]
_encode = msgspec.json.encode


class ResponseWriter:
    """Writes one response. An item that has begun is closed when the next begins, or at the end."""

    content_type = b"text/event-stream; charset=utf-8"

    def __init__(self, placed: Placed, body: ResponseBody) -> None:
        model = placed.enqueued.admitted.routed.quoted.resolved.model.name
        self._id = placed.id
        self._head = head(body, placed.id, model, admitted_ms(placed.id) // 1000)
        self._number = 0
        self._begun = False
        self._items: list[Json] = []
        self._open = ""
        self._text: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self._call = ToolCallDelta(0)
        self._finish = "stop"

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas of text, reasoning and calls."""
        parts = self._begin()
        for delta in deltas:
            if not isinstance(delta, TextDelta):
                continue
            if delta.reasoning:
                parts += self._switch("reasoning")
                parts.append(self._piece("response.reasoning_text.delta", delta.reasoning))
            if delta.text:
                parts += self._switch("message")
                self._logprobs += delta.logprobs or ()
                parts.append(
                    self._piece("response.output_text.delta", delta.text, logprobs=token_logprobs(delta.logprobs))
                )
            for call in delta.tool_calls or ():
                parts += self._called(call)
            self._finish = delta.finish_reason or self._finish
        return b"".join(parts)

    def end(self, answer: Answer) -> bytes:
        """Close what is open, and write the whole response with its usage."""
        parts = self._begin()
        if not self._items and not self._open:
            parts += self._switch("message")
        parts += self._close()
        whole = finished(self._head, self._items, answer, Choice("", self._finish))
        parts.append(self._event(f"response.{whole['status']}", response=whole))
        return b"".join(parts)

    def broken(self, error: FaregateError) -> bytes:
        """Write that the stream breaks off here."""
        return self._event("error", code=error.code, message=error.message, param=error.param)

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        return [
            self._event("response.created", response=self._head),
            self._event("response.in_progress", response=self._head),
        ]

    def _event(self, kind: str, **fields: Any) -> bytes:
        told = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode(told))

    def _of_item(self, kind: str, **fields: Any) -> bytes:
        """Write an event about the item that is open."""
        item_id = self._item("in_progress")["id"]
        return self._event(kind, item_id=item_id, output_index=len(self._items), **fields)

    def _piece(self, kind: str, text: str, **fields: Any) -> bytes:
        self._text.append(text)
        return self._of_item(kind, content_index=0, delta=text, **fields)

    def _called(self, call: ToolCallDelta) -> list[bytes]:
        """Write a piece of a call; the first piece of each has its name."""
        parts: list[bytes] = []
        if self._open != "call" or call.index != self._call.index:
            parts += self._close()
            self._call = ToolCallDelta(call.index, call.id, call.name)
            parts += self._switch("call")
        if call.arguments:
            self._text.append(call.arguments)
            parts.append(self._of_item("response.function_call_arguments.delta", delta=call.arguments))
        return parts

    def _switch(self, kind: str) -> list[bytes]:
        """Open an item of a kind, where it is not open yet."""
        if self._open == kind:
            return []
        parts = self._close()
        self._open = kind
        parts.append(
            self._event(
                "response.output_item.added", output_index=len(self._items), item=self._item("in_progress", begun=True)
            )
        )
        if kind != "call":
            parts.append(self._of_item("response.content_part.added", content_index=0, part=self._part("")))
        return parts

    def _close(self) -> list[bytes]:
        """Write the end of the item that is open."""
        if not self._open:
            return []
        text = "".join(self._text)
        parts: list[bytes] = []
        if self._open == "call":
            done = self._of_item("response.function_call_arguments.done", arguments=text, name=self._call.name or "")
            parts.append(done)
        else:
            kind = "response.output_text.done" if self._open == "message" else "response.reasoning_text.done"
            extra = {"logprobs": token_logprobs(self._logprobs)} if self._open == "message" else {}
            parts.append(self._of_item(kind, content_index=0, text=text, **extra))
            parts.append(self._of_item("response.content_part.done", content_index=0, part=self._part(text)))
        item = self._item("completed")
        parts.append(self._event("response.output_item.done", output_index=len(self._items), item=item))
        self._items.append(item)
        self._open, self._text, self._logprobs = "", [], []
        return parts

    def _part(self, text: str) -> Json:
        if self._open == "message":
            return text_part(text, self._logprobs)
        return {"type": "reasoning_text", "text": text}

    def _item(self, status: str, *, begun: bool = False) -> Json:
        """Give the item that is open as it stands; as it begins it has no content."""
        text = "" if begun else "".join(self._text)
        if self._open == "message":
            return message_item(self._id, None if begun else text, self._logprobs, status)
        if self._open == "reasoning":
            return reasoning_item(self._id, text, status)
        return call_item(self._id, msgspec.structs.replace(self._call, arguments=text), status)
