"""`POST /v1/embeddings`."""

import struct
from base64 import b64encode
from typing import Any

import msgspec
from litestar.types import Scope

from gateway.contract.events import VectorOutput
from gateway.contract.inputs import EmbeddingInput
from gateway.errors import FaregateError
from gateway.flow.call import Call
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers, money_fields
from gateway.http.endpoint import Writer
from gateway.http.errors import Headers, openai_body
from gateway.http.openai.bodies import EmbeddingBody, input_of
from gateway.http.openai.extra import decode_open
from gateway.http.openai.parse import Received, call_of
from gateway.http.raw import Head

_DECODER = msgspec.json.Decoder(EmbeddingBody)


class EmbeddingFamily:
    """Embeddings."""

    path = "/v1/embeddings"

    def read(self, head: Head, scope: Scope, body: bytes) -> tuple[Call, "EmbeddingShape"]:
        """Parse a call."""
        asked = decode_open(_DECODER, body)
        value = input_of(asked, EmbeddingInput)
        call = call_of(Received(head, scope, body), asked, "embedding", value, stream=False)
        return call, EmbeddingShape(asked.encoding_format == "base64")

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        return openai_body(error)


class EmbeddingShape:
    """Whether vectors go as base64 of little-endian float32, the SDK's default, or as lists of numbers."""

    stream = False

    def __init__(self, base64: bool) -> None:
        self._base64 = base64

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Write a whole answer."""
        vectors = answer.output.vectors if isinstance(answer.output, VectorOutput) else []
        body = {
            "id": answer.id,
            "object": "list",
            "model": answer.model,
            "data": [
                {"object": "embedding", "index": index, "embedding": self._vector(vector)}
                for index, vector in enumerate(vectors)
            ],
            "usage": {
                "prompt_tokens": answer.units.input_tokens,
                "total_tokens": answer.units.input_tokens,
                **money_fields(answer),
            },
        }
        return [*answer_headers(answer), (b"content-type", b"application/json")], msgspec.json.encode(body)

    def _vector(self, vector: bytes) -> str | list[float]:
        if self._base64:
            return b64encode(vector).decode()
        return list(struct.unpack(f"<{len(vector) // 4}f", vector))

    def writer(self, placed: Placed) -> Writer:
        """Embeddings are never streamed."""
        raise AssertionError("embeddings are never streamed")
