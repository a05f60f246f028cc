"""`POST /v1/rerank`, in the shape that Cohere, Jina and vLLM share."""

from typing import Any

import msgspec
from litestar.types import Scope

from gateway.contract.events import RankingOutput
from gateway.contract.inputs import RerankInput
from gateway.errors import FaregateError
from gateway.flow.call import Call
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers, money_fields
from gateway.http.endpoint import Writer
from gateway.http.errors import Headers, openai_body
from gateway.http.openai.extra import decode_open
from gateway.http.openai.media_bodies import RerankBody
from gateway.http.openai.parse import Received, call_of
from gateway.http.raw import Head

_DECODER = msgspec.json.Decoder(RerankBody)


class RerankFamily:
    """Documents in the order of how well they answer a query."""

    path = "/v1/rerank"

    def read(self, head: Head, scope: Scope, body: bytes) -> tuple[Call, "RerankShape"]:
        """Parse a call."""
        asked = decode_open(_DECODER, body)
        texts = [document if isinstance(document, str) else document.text for document in asked.documents]
        value = RerankInput(query=asked.query, documents=texts, top_n=asked.top_n, extra=asked.extra)
        call = call_of(Received(head, scope, body), asked, "rerank", value, stream=False)
        return call, RerankShape(texts if asked.return_documents else None)

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        return openai_body(error)


class RerankShape:
    """Whether the documents go back with their places."""

    stream = False

    def __init__(self, documents: list[str] | None) -> None:
        self._documents = documents

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Write a whole answer."""
        ranking = answer.output.results if isinstance(answer.output, RankingOutput) else []
        tokens = answer.units.input_tokens
        body = {
            "id": answer.id,
            "model": answer.model,
            "results": [self._result(index, relevance) for index, relevance in ranking],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens, **money_fields(answer)},
            "meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": tokens, "output_tokens": 0}},
        }
        return [*answer_headers(answer), (b"content-type", b"application/json")], msgspec.json.encode(body)

    def _result(self, index: int, relevance: float) -> dict[str, Any]:
        told: dict[str, Any] = {"index": index, "relevance_score": relevance}
        return told if self._documents is None else told | {"document": {"text": self._documents[index]}}

    def writer(self, placed: Placed) -> Writer:
        """Rankings are never streamed."""
        raise AssertionError("rankings are never streamed")
