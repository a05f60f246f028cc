"""`POST /v1/audio/speech`."""

from base64 import b64encode
from typing import Any

import msgspec
from litestar.types import Scope

from gateway.contract.events import AudioDelta, MediaOutput
from gateway.contract.inputs import SpeechInput
from gateway.errors import FaregateError
from gateway.flow.call import Call
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers, money_fields
from gateway.http.endpoint import Deltas, Writer
from gateway.http.errors import Headers, openai_body
from gateway.http.openai.bodies import SpeechBody, VoiceId
from gateway.http.openai.parse import Received, call_of
from gateway.http.raw import Head, decode

_DECODER = msgspec.json.Decoder(SpeechBody)
_encode = msgspec.json.encode

MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


class SpeechFamily:
    """Speech."""

    path = "/v1/audio/speech"

    def read(self, head: Head, scope: Scope, body: bytes) -> tuple[Call, "SpeechShape"]:
        """Parse a call. `mp3` is the default format, as the SDKs expect."""
        asked = decode(_DECODER, body)
        voice = asked.voice.id if isinstance(asked.voice, VoiceId) else asked.voice
        fields = {name: getattr(asked, name) for name in SpeechInput.__struct_fields__}
        audio = asked.response_format or "mp3"
        value = SpeechInput(**(fields | {"voice": voice, "response_format": audio}))
        stream = asked.stream_format is not None
        call = call_of(Received(head, scope, body), asked, "text-to-speech", value, stream=stream)
        return call, SpeechShape(asked.stream_format, audio)

    def error(self, error: FaregateError) -> dict[str, Any]:
        """Render an error."""
        return openai_body(error)


class SpeechShape:
    """The whole file, its bytes as they are made, or events that carry them."""

    def __init__(self, stream_format: str | None, audio: str) -> None:
        self.stream = stream_format is not None
        self._events = stream_format == "sse"
        self._media_type = MEDIA_TYPES[audio].encode()

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Write the whole file; usage and charge stand in the headers."""
        data = answer.output.data if isinstance(answer.output, MediaOutput) else b""
        return [*answer_headers(answer), (b"content-type", self._media_type)], data

    def writer(self, placed: Placed) -> Writer:
        """Begin a stream."""
        return SpeechEvents() if self._events else SpeechBytes(self._media_type)


class SpeechBytes:
    """Writes the bare bytes of the file; a fault breaks the connection off, for there is no place to say more."""

    def __init__(self, media_type: bytes) -> None:
        self.content_type = media_type

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas."""
        return b"".join([delta.data for delta in deltas if isinstance(delta, AudioDelta)])

    def end(self, answer: Answer) -> bytes:
        """Write nothing more."""
        return b""

    def broken(self, error: FaregateError) -> None:
        """Write nothing: the response stays without its end, so the connection is closed on the caller."""


class SpeechEvents:
    """Writes `speech.audio.delta` events, and `speech.audio.done` with usage and charge."""

    content_type = b"text/event-stream; charset=utf-8"

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas."""
        return b"".join([
            b'data: {"type":"speech.audio.delta","audio":"' + b64encode(delta.data) + b'"}\n\n'
            for delta in deltas
            if isinstance(delta, AudioDelta)
        ])  # fmt: skip

    def end(self, answer: Answer) -> bytes:
        """Write usage and charge."""
        units = answer.units
        usage = {
            "input_tokens": units.input_tokens,
            "output_tokens": units.output_tokens,
            "total_tokens": units.input_tokens + units.output_tokens,
            "characters": units.characters,
            "audio_ms": units.audio_ms,
            **money_fields(answer),
        }
        return b"data: " + _encode({"type": "speech.audio.done", "request_id": answer.id, "usage": usage}) + b"\n\n"

    def broken(self, error: FaregateError) -> bytes:
        """Write an error event."""
        return b"data: " + _encode(openai_body(error)) + b"\n\n"
