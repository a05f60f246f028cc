"""`POST /v1/chat/completions`."""

from typing import Any

import msgspec
from litestar.types import Scope

from gateway.contract.events import Choice, TextDelta, TextOutput, ToolCallDelta
from gateway.contract.inputs import ChatInput
from gateway.errors import FaregateError
from gateway.flow.call import Call
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers
from gateway.http.endpoint import Deltas
from gateway.http.errors import Headers, openai_body
from gateway.http.openai.bodies import ChatBody, input_of
from gateway.http.openai.extra import decode_open
from gateway.http.openai.logprobs import chat_logprobs
from gateway.http.openai.parse import Received, call_of
from gateway.http.openai.stream import TextWriter
from gateway.http.openai.usage import text_usage
from gateway.http.raw import Head

_DECODER = msgspec.json.Decoder(ChatBody)
_encode = msgspec.json.encode


class ChatFamily:
    """Chat completions."""

    path = "/v1/chat/completions"

    def read(self, head: Head, scope: Scope, body: bytes) -> tuple[Call, "ChatShape"]:
        """Parse a call."""
        chat = decode_open(_DECODER, body)
        stream = bool(chat.stream)
        call = call_of(Received(head, scope, body), chat, "chat", input_of(chat, ChatInput), stream=stream)
        return call, ChatShape(stream, bool(chat.stream_options and chat.stream_options.include_usage))

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        return openai_body(error)


class ChatShape:
    """Whether to stream, and whether the usage comes in a chunk of its own."""

    def __init__(self, stream: bool, include_usage: bool) -> None:
        self.stream = stream
        self._include_usage = include_usage

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Write a whole answer."""
        choices = answer.output.choices if isinstance(answer.output, TextOutput) else []
        body = {
            "id": answer.id,
            "object": "chat.completion",
            "created": answer.created_s,
            "model": answer.model,
            "choices": [_choice(index, choice) for index, choice in enumerate(choices)],
            "usage": text_usage(answer),
        }
        return [*answer_headers(answer), (b"content-type", b"application/json")], _encode(body)

    def writer(self, placed: Placed) -> "ChatWriter":
        """Begin a stream."""
        return ChatWriter(placed, self._include_usage)


class ChatWriter(TextWriter):
    """Writes `chat.completion.chunk` events."""

    kind = "chat.completion.chunk"

    def __init__(self, placed: Placed, include_usage: bool) -> None:
        super().__init__(placed, include_usage)
        self._greeted: set[int] = set()

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas; the first of each choice is preceded by its role, and its finish waits for the charge."""
        parts: list[bytes] = []
        for delta in deltas:
            if not isinstance(delta, TextDelta):
                continue
            if delta.choice not in self._greeted:
                self._greeted.add(delta.choice)
                parts.append(self.chunk(delta.choice, b'"delta":{"role":"assistant","content":""}'))
            self.note_finish(delta)
            if delta.logprobs or delta.tool_calls or delta.reasoning:
                parts.append(self.chunk(delta.choice, _rich_delta(delta)))
            elif delta.text:
                parts.append(self.chunk(delta.choice, b'"delta":{"content":' + _encode(delta.text) + b"}"))
        return b"".join(parts)

    def empty(self) -> bytes:
        """Write the delta of a finish."""
        return b'"delta":{}'


def _rich_delta(delta: TextDelta) -> bytes:
    content: dict[str, Any] = {"content": delta.text} if delta.text or not delta.tool_calls else {}
    if delta.reasoning:
        content["reasoning_content"] = delta.reasoning
    if delta.tool_calls:
        content["tool_calls"] = [_tool_delta(call) for call in delta.tool_calls]
    logprobs = b',"logprobs":' + _encode(chat_logprobs(delta.logprobs)) if delta.logprobs else b""
    return b'"delta":' + _encode(content) + logprobs


def _tool_delta(call: ToolCallDelta) -> dict[str, Any]:
    told: dict[str, Any] = {"index": call.index}
    if call.id is not None:
        told |= {"id": call.id, "type": "function"}
    function = {"arguments": call.arguments} if call.name is None else {"name": call.name, "arguments": call.arguments}
    return told | {"function": function}


def _choice(index: int, choice: Choice) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": choice.text or (None if choice.tool_calls else "")}
    if choice.reasoning is not None:
        message["reasoning_content"] = choice.reasoning
    if choice.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in choice.tool_calls
        ]
    logprobs = chat_logprobs(choice.logprobs) if choice.logprobs is not None else None
    return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": choice.finish_reason}
