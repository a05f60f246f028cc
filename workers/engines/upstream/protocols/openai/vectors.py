"""Embeddings and rankings."""

import base64
import struct
from binascii import Error as NotBase64
from typing import Any, TypeVar

import msgspec

from gateway.contract.events import Output, RankingOutput, VectorOutput
from gateway.contract.inputs import EmbeddingInput, RerankInput
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.fields import wire
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.protocols.openai.usage import cost_in, count

FLOAT_BYTES = 4

Shape = TypeVar("Shape")


class _Row(msgspec.Struct):
    embedding: str | list[float]
    index: int = 0


class _Vectors(msgspec.Struct):
    data: list[_Row]
    usage: msgspec.Raw = msgspec.Raw(b"")


class _Rank(msgspec.Struct):
    index: int
    relevance_score: float


class _Ranking(msgspec.Struct):
    results: list[_Rank]
    usage: msgspec.Raw = msgspec.Raw(b"")


class Embeddings:
    """Texts as vectors; Base64 is asked for and numbers are taken, too."""

    async def perform(self, call: Call) -> Output:
        """Call, and read a vector for each text."""
        given = call.run.input
        assert isinstance(given, EmbeddingInput)
        texts = [given.input] if isinstance(given.input, str) else given.input
        body = {"model": call.target.model, "input": texts, "encoding_format": "base64"}
        read, sent = await _called(call, "/embeddings", body | wire(call, {"dimensions": "dimensions"}), _Vectors)
        rows = sorted(read.data, key=lambda row: row.index)
        vectors = [_floats(row.embedding) for row in rows]
        lengths = {len(vector) for vector in vectors}
        if [row.index for row in rows] != list(range(len(texts))) or len(lengths) != 1 or 0 in lengths:
            raise unreadable("vectors that do not fit the texts")
        count(call, read.usage, sent_chars=sent, came_chars=0)
        call.run.units.output_tokens = 0
        call.estimated = call.estimated and not read.usage
        return VectorOutput(vectors, lengths.pop() // FLOAT_BYTES)


class Rankings:
    """Documents by relevance, in the shape that Cohere, Jina and vLLM share."""

    async def perform(self, call: Call) -> Output:
        """Call, and read the order."""
        given = call.run.input
        assert isinstance(given, RerankInput)
        body = {"model": call.target.model, "query": given.query, "documents": given.documents}
        body |= {"return_documents": False} | wire(call, {"top_n": "top_n"})
        read, sent = await _called(call, "/rerank", body, _Ranking)
        ranks = sorted(read.results, key=lambda rank: -rank.relevance_score)[: given.top_n]
        seen = {rank.index for rank in ranks}
        if not ranks or len(seen) != len(ranks) or not seen <= set(range(len(given.documents))):
            raise unreadable("a ranking that does not fit the documents")
        count(call, read.usage, sent_chars=sent, came_chars=0)
        call.run.units.output_tokens = 0
        return RankingOutput([(rank.index, min(1.0, max(0.0, rank.relevance_score))) for rank in ranks])


async def _called(call: Call, path: str, body: dict[str, Any], shape: type[Shape]) -> tuple[Shape, int]:
    """Call, and read an answer of a shape; gives it with the number of characters that were sent."""
    answer = await call.link.call("POST", path, json=body)
    call.cost_nanos = cost_in(answer.headers)
    try:
        return msgspec.json.decode(answer.body, type=shape), len(msgspec.json.encode(body.get("input") or body))
    except (msgspec.DecodeError, RecursionError):
        raise unreadable("an answer that does not have its shape") from None


def _floats(value: str | list[float]) -> bytes:
    """Give a vector as little-endian float32 bytes."""
    if isinstance(value, list):
        return struct.pack(f"<{len(value)}f", *value)
    try:
        data = base64.b64decode(value, validate=True)
    except (NotBase64, ValueError):
        raise unreadable("a vector that is no Base64") from None
    if len(data) % FLOAT_BYTES:
        raise unreadable("a vector with a number cut off")
    return data
