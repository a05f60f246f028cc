"""An upstream for peers: an OpenAI-shaped ASGI application with fixed answers, many times faster than they are.

A streaming call is answered with 100 chunks 10 ms apart, as the model `fake-stream` does; any other with
20 tokens at once, as `fake-chat` does.
"""

import asyncio
import json
import time

from litestar.types import Receive, Scope, Send

CHUNKS = 100
GAP_S = 0.01
_BASE = {"id": "chatcmpl-0000000000", "created": 1_700_000_000, "model": "mock"}
_USAGE = {"prompt_tokens": 20, "completion_tokens": 20, "total_tokens": 40}
_MESSAGE = {"role": "assistant", "content": "reply token " * 10}
_ANSWER = {
    **_BASE,
    "object": "chat.completion",
    "choices": [{"index": 0, "message": _MESSAGE, "finish_reason": "stop"}],
    "usage": _USAGE,
}


def _event(delta: dict[str, str], finish_reason: str | None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    text = json.dumps({**_BASE, "object": "chat.completion.chunk", "choices": choices})
    return f"data: {text}\n\n".encode()


_WHOLE = json.dumps(_ANSWER).encode()
_CHUNK = _event({"role": "assistant", "content": "token "}, None)
_LAST = _event({}, "stop") + b"data: [DONE]\n\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one call."""
    body = await _body(receive)
    streams = b'"stream":true' in body.replace(b" ", b"")
    kind = b"text/event-stream" if streams else b"application/json"
    headers = [(b"content-type", kind)]
    if not streams:
        headers.append((b"content-length", b"%d" % len(_WHOLE)))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if not streams:
        await send({"type": "http.response.body", "body": _WHOLE, "more_body": False})
        return
    due = time.monotonic()
    for _ in range(CHUNKS):
        await send({"type": "http.response.body", "body": _CHUNK, "more_body": True})
        due += GAP_S
        await asyncio.sleep(due - time.monotonic())
    await send({"type": "http.response.body", "body": _LAST, "more_body": False})


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message["body"])
        if not message["more_body"]:
            return b"".join(parts)
