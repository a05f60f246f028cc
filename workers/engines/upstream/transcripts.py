"""Transcripts as models give them: a text, or an object with a text, pieces of it, and the language."""

from typing import Any

from gateway.contract.events import Segment, TranscriptOutput
from gateway.contract.inputs import Media, TranscriptionInput
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.results import place, text_at


def transcript_of(call: Call, output: Any) -> TranscriptOutput:
    """Read a transcript, and count the sound that was heard. Raises UpstreamFailed where there is no text."""
    text = output if isinstance(output, str) else place(output, "text")
    if text is None:
        text = place(output, "transcription")
    if not isinstance(text, str):
        raise unreadable("a transcript without text")
    duration_ms = heard_ms(call)
    pieces = place(output, "segments") or place(output, "chunks")
    found = [segment for each in pieces if (segment := _segment(each))] if isinstance(pieces, list) else []
    return TranscriptOutput(text=text.strip(), language=_language(output), duration_ms=duration_ms, segments=found)


def heard_ms(call: Call) -> int:
    """Count the sound of the caller's file, as it was measured before the request was admitted."""
    given = call.run.input
    source = given.file if isinstance(given, TranscriptionInput) else None
    duration_ms = source.duration_ms if isinstance(source, Media) else 0
    call.run.units.audio_ms = duration_ms
    call.estimated = call.estimated or not duration_ms
    return duration_ms


def _language(output: Any) -> str:
    for name in ("language_code", "language", "detected_language", "inferred_languages"):
        found = place(output, name)
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, str):
            return found
    return ""


def _segment(piece: Any) -> Segment | None:
    """Read a piece: `start` and `end` in seconds, or a `timestamp` of both."""
    start, end = place(piece, "start"), place(piece, "end")
    span = place(piece, "timestamp")
    if isinstance(span, list) and len(span) == 2:
        start, end = span
    if not isinstance(start, int | float):
        return None
    return Segment(
        round(start * 1000),
        round((end if isinstance(end, int | float) else start) * 1000),
        text_at(piece, "text").strip(),
    )
