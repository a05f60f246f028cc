"""Speech and transcripts."""

from typing import Any

import msgspec

from gateway.contract.events import AudioDelta, MediaOutput, Output, Segment, TranscriptOutput
from gateway.contract.inputs import Media, SpeechInput, TranscriptionInput
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.fields import wire
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.protocols.openai.pictures import form_fields, form_file
from workers.engines.upstream.protocols.openai.usage import cost_in, count

SPEECH = {name: name for name in ("input", "voice", "instructions", "response_format", "speed")}
VOICE = "alloy"
"""What is asked for where the caller names no voice: the field is a must."""
MOST_BYTES = 100 * 1024 * 1024
TRANSCRIPTION = {"language": "language", "prompt": "prompt", "temperature": "temperature"}
GRANULARITIES = "timestamp_granularities[]"


class Speaking:
    """Text spoken."""

    async def perform(self, call: Call) -> Output:
        """Call; a caller who streams hears it as it comes."""
        given = call.run.input
        assert isinstance(given, SpeechInput)
        body = {"model": call.target.model, "voice": VOICE} | wire(call, SPEECH)
        pieces: list[bytes] = []
        async with call.link.stream("POST", "/audio/speech", json=body, limit_bytes=MOST_BYTES) as opened:
            call.cost_nanos = cost_in(opened.headers)
            if opened.headers.get("content-type", "").startswith("application/json"):
                raise unreadable("speech that is JSON")
            async for piece in opened.pieces():
                pieces.append(piece)
                if call.run.heard:
                    call.run.emit(AudioDelta(piece))
                call.run.units.characters = len(given.input)
        declared = "audio/pcm" if body.get("response_format") == "pcm" else ""
        sound: MediaOutput = await call.parcels.take(b"".join(pieces), kind="audio", declared=declared)
        return sound


class _Piece(msgspec.Struct):
    start: float = 0.0
    end: float = 0.0
    text: str = ""
    word: str = ""


class _Transcript(msgspec.Struct):
    text: str
    language: str | None = None
    duration: float | str | None = None
    segments: list[_Piece] | None = None
    words: list[_Piece] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"")


class Hearing:
    """Sound written down, or translated into English."""

    async def perform(self, call: Call) -> Output:
        """Call with the file, and read text and times."""
        given = call.run.input
        assert isinstance(given, TranscriptionInput)
        assert isinstance(given.file, Media)
        body: dict[str, Any] = {"model": call.target.model, "response_format": "verbose_json"} | wire(
            call, TRANSCRIPTION
        )
        if given.timestamp_granularities and not given.translate:
            body[GRANULARITIES] = list(given.timestamp_granularities)
        path = "/audio/translations" if given.translate else "/audio/transcriptions"
        files = [await form_file(call, "file", given.file)]
        answer = await call.link.form(path, fields=form_fields(body), files=files)
        call.cost_nanos = cost_in(answer.headers)
        try:
            read = msgspec.json.decode(answer.body, type=_Transcript, strict=False)
        except (msgspec.DecodeError, RecursionError):
            raise unreadable("an answer that is no transcript") from None
        length_ms = _length_ms(read, given.file)
        call.run.units.audio_ms = length_ms
        if read.usage and b"tokens" in bytes(read.usage):
            count(call, read.usage, sent_chars=0, came_chars=len(read.text))
        return TranscriptOutput(
            read.text,
            read.language or given.language or "",
            length_ms,
            [_segment(each, each.text) for each in read.segments or ()],
            [_segment(each, each.word) for each in read.words or ()],
        )


def _length_ms(read: _Transcript, file: Media) -> int:
    """Give the length of the sound: as it was measured here, else as the upstream says."""
    if file.duration_ms:
        return file.duration_ms
    try:
        return max(0, round(float(read.duration or 0) * 1000))
    except (ValueError, OverflowError):
        return 0


def _segment(piece: _Piece, text: str) -> Segment:
    return Segment(max(0, round(piece.start * 1000)), max(0, round(piece.end * 1000)), text.strip())
