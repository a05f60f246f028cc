"""How the native family shows outputs: text, vectors, media by address, transcripts and rankings."""

import struct
from collections.abc import Callable
from typing import Any

from gateway.contract.events import (
    GalleryOutput,
    MediaOutput,
    Output,
    RankingOutput,
    Segment,
    TextOutput,
    TranscriptOutput,
    VectorOutput,
    media_of,
)
from gateway.http.openai.logprobs import chat_logprobs
from gateway.media.addresses import Addresses

MEASURES = ("width", "height", "duration_ms", "frames")


def output_view(output: Output | None, addresses: Addresses) -> dict[str, Any] | None:
    """Show an output. Media have an address each, which serves without a key until it expires."""
    return None if output is None else _VIEWS[type(output)](output, addresses)


def _text(output: TextOutput, _: Addresses) -> dict[str, Any]:
    return {
        "choices": [
            {
                "index": index,
                "text": choice.text,
                "finish_reason": choice.finish_reason,
                "reasoning": choice.reasoning,
                "tool_calls": [
                    {"id": call.id, "name": call.name, "arguments": call.arguments} for call in choice.tool_calls
                ]
                if choice.tool_calls
                else None,
                "logprobs": chat_logprobs(choice.logprobs)["content"] if choice.logprobs is not None else None,
            }
            for index, choice in enumerate(output.choices)
        ]
    }


def _vectors(output: VectorOutput, _: Addresses) -> dict[str, Any]:
    unpacked = [list(struct.unpack(f"<{output.dimensions}f", vector)) for vector in output.vectors]
    return {"dimensions": output.dimensions, "embeddings": unpacked}


def _media(output: MediaOutput | GalleryOutput, addresses: Addresses) -> dict[str, Any]:
    return {"media": [_file(item, addresses) for item in media_of(output)]}


def _file(item: MediaOutput, addresses: Addresses) -> dict[str, Any]:
    """Show a file with what is known of it: a sound has no width, a picture no length."""
    told: dict[str, Any] = {
        "url": addresses.of_output(item),
        "media_type": item.media_type,
        "size_bytes": item.size_bytes,
    }
    told |= {name: value for name in MEASURES if (value := getattr(item, name))}
    if item.seed is not None:
        told["seed"] = item.seed
    return told | {"role": item.role} if item.role else told


def _transcript(output: TranscriptOutput, _: Addresses) -> dict[str, Any]:
    return {
        "text": output.text,
        "language": output.language,
        "duration_ms": output.duration_ms,
        "segments": _pieces(output.segments),
        "words": _pieces(output.words),
    }


def _pieces(pieces: list[Segment]) -> list[dict[str, Any]]:
    return [{"start_ms": piece.start_ms, "end_ms": piece.end_ms, "text": piece.text} for piece in pieces]


def _ranking(output: RankingOutput, _: Addresses) -> dict[str, Any]:
    return {"results": [{"index": index, "relevance_score": relevance} for index, relevance in output.results]}


_VIEWS: dict[type[Output], Callable[[Any, Addresses], dict[str, Any]]] = {
    TextOutput: _text,
    VectorOutput: _vectors,
    MediaOutput: _media,
    GalleryOutput: _media,
    TranscriptOutput: _transcript,
    RankingOutput: _ranking,
}
