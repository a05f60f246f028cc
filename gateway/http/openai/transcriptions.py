"""`POST /v1/audio/transcriptions` and `/v1/audio/translations`."""

from collections.abc import Callable
from typing import Any

import msgspec

from gateway.contract.events import Segment, TextDelta, TranscriptOutput
from gateway.contract.tasks import Task
from gateway.errors import FaregateError, InvalidRequest
from gateway.flow.call import Call
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers, money_fields
from gateway.http.endpoint import Deltas, Writer
from gateway.http.errors import Headers, openai_body
from gateway.http.media import MediaFamily
from gateway.http.openai.media_bodies import TranscriptFormat, TranscriptionBody
from gateway.http.openai.offers import given_in, offers_of
from gateway.http.openai.parse import Received, media_call
from gateway.http.subtitles import as_srt, as_vtt

_encode = msgspec.json.encode
_TASKS: tuple[Task, ...] = ("speech-to-text",)


class TranscriptionFamily(MediaFamily):
    """What was said, in its own language."""

    path = "/v1/audio/transcriptions"
    body = TranscriptionBody
    files = {"file": "file"}
    translate = False

    def read(self, received: Received, asked: TranscriptionBody) -> tuple[Call, "TranscriptShape"]:
        """Parse a call."""
        if asked.stream and asked.response_format not in ("json", "text"):
            raise InvalidRequest("A stream has the format json or text.", param="response_format")
        translate = {"translate": True} if self.translate or asked.translate else {}
        offers = offers_of(given_in(asked, _TASKS) | translate, _TASKS)
        call = media_call(received, asked, offers, "stream" if asked.stream else "wait")
        return call, TranscriptShape(asked, bool(translate))


class TranslationFamily(TranscriptionFamily):
    """What was said, in English."""

    path = "/v1/audio/translations"
    translate = True


class TranscriptShape:
    """In which format the transcript goes."""

    def __init__(self, asked: TranscriptionBody, translated: bool) -> None:
        self.stream = bool(asked.stream)
        self._asked = asked
        self._translated = translated

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Write a whole answer; formats without room for usage and charge have them in the headers."""
        output = answer.output if isinstance(answer.output, TranscriptOutput) else TranscriptOutput("")
        media_type, body = _FORMATS[self._asked.response_format](self, output, answer)
        return [*answer_headers(answer), (b"content-type", media_type)], body

    def json(self, output: TranscriptOutput, answer: Answer) -> tuple[bytes, bytes]:
        """Write the text and the usage."""
        return b"application/json", _encode({"id": answer.id, "text": output.text, "usage": sound_usage(answer)})

    def verbose(self, output: TranscriptOutput, answer: Answer) -> tuple[bytes, bytes]:
        """Write everything that is known; what no engine measures is null."""
        wanted = self._asked.timestamp_granularities or ["segment"]
        told: dict[str, Any] = {
            "id": answer.id,
            "task": "translate" if self._translated else "transcribe",
            "language": output.language,
            "duration": output.duration_ms / 1000,
            "text": output.text,
        }
        if "segment" in wanted:
            told["segments"] = [self._segment(at, piece) for at, piece in enumerate(output.segments)]
        if "word" in wanted:
            told["words"] = [
                {"word": word.text, "start": word.start_ms / 1000, "end": word.end_ms / 1000} for word in output.words
            ]
        return b"application/json", _encode(told | {"usage": sound_usage(answer)})

    def _segment(self, at: int, piece: Segment) -> dict[str, Any]:
        return {
            "id": at,
            "seek": piece.start_ms // 10,
            "start": piece.start_ms / 1000,
            "end": piece.end_ms / 1000,
            "text": piece.text,
            "tokens": [],
            "temperature": self._asked.temperature or 0.0,
            "avg_logprob": None,
            "compression_ratio": None,
            "no_speech_prob": None,
        }

    def writer(self, placed: Placed) -> Writer:
        """Begin a stream."""
        return TranscriptWriter()


_FORMATS: dict[TranscriptFormat, Callable[[TranscriptShape, TranscriptOutput, Answer], tuple[bytes, bytes]]] = {
    "json": TranscriptShape.json,
    "verbose_json": TranscriptShape.verbose,
    "text": lambda _, output, __: (b"text/plain; charset=utf-8", output.text.encode() + b"\n"),
    "srt": lambda _, output, __: (b"text/plain; charset=utf-8", as_srt(output).encode()),
    "vtt": lambda _, output, __: (b"text/vtt; charset=utf-8", as_vtt(output).encode()),
}


def sound_usage(answer: Answer) -> dict[str, Any]:
    """Tell how much was heard, and what it cost."""
    return {"type": "duration", "seconds": answer.units.audio_ms / 1000, **money_fields(answer)}


class TranscriptWriter:
    """Writes `transcript.text.delta` events, and `transcript.text.done` with usage and charge."""

    content_type = b"text/event-stream; charset=utf-8"

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas."""
        return b"".join([
            b"data: " + _encode({"type": "transcript.text.delta", "delta": delta.text}) + b"\n\n"
            for delta in deltas
            if isinstance(delta, TextDelta) and delta.text
        ])  # fmt: skip

    def end(self, answer: Answer) -> bytes:
        """Write the whole text, with usage and charge."""
        text = answer.output.text if isinstance(answer.output, TranscriptOutput) else ""
        done = {"type": "transcript.text.done", "text": text, "request_id": answer.id, "usage": sound_usage(answer)}
        return b"data: " + _encode(done) + b"\n\n"

    def broken(self, error: FaregateError) -> bytes:
        """Write an error event."""
        return b"data: " + _encode(openai_body(error)) + b"\n\n"
