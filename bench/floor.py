"""The floor: what a bare Litestar route costs on this machine at this hour, on the server that the gateway runs on.

Two applications answer a chat call with a fixed text and do nothing else: `typed` as a Litestar handler with
typed body and answer, `raw` as a Litestar `@asgi` route, which is what the gateway's hot families are.
"""

import msgspec
from litestar import Litestar, asgi, post
from litestar.types import Receive, Scope, Send

PATH = "/v1/chat/completions"


class Message(msgspec.Struct):
    """One message of a chat."""

    role: str
    content: str


class Chat(msgspec.Struct):
    """The body of a chat call."""

    model: str
    messages: list[Message]
    max_tokens: int = 64


class Choice(msgspec.Struct):
    """One answer of a chat."""

    message: Message
    index: int = 0
    finish_reason: str = "stop"


class Tokens(msgspec.Struct):
    """What a chat used."""

    prompt_tokens: int = 20
    completion_tokens: int = 20
    total_tokens: int = 40


class Completion(msgspec.Struct):
    """The answer to a chat call."""

    model: str
    choices: list[Choice]
    usage: Tokens
    id: str = "chatcmpl-0"
    object: str = "chat.completion"
    created: int = 0


def _answer(model: str) -> Completion:
    text = Message(role="assistant", content="reply token " * 10)
    return Completion(model=model, choices=[Choice(message=text)], usage=Tokens())


_FIXED = msgspec.json.encode(_answer("floor"))
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_FIXED))]


@post(PATH, status_code=200)
async def typed_chat(data: Chat) -> Completion:
    """Answer a typed call."""
    return _answer(data.model)


@asgi(PATH, is_mount=False)
async def raw_chat(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body to its end and answer fixed bytes."""
    while True:
        message = await receive()
        if message["type"] != "http.request" or not message["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _FIXED, "more_body": False})


def typed() -> Litestar:
    """Make the application of the typed floor."""
    return Litestar([typed_chat], openapi_config=None, logging_config=None)


def raw() -> Litestar:
    """Make the application of the `@asgi` floor."""
    return Litestar([raw_chat], openapi_config=None, logging_config=None)
