"""`POST /v1/audio/speech`."""

from base64 import b64encode
from typing import Any

import msgspec

from gateway.contract.events import AudioDelta, MediaOutput
from gateway.contract.tasks import Task
from gateway.errors import FaregateError
from gateway.flow.call import Call, Mode
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers, money_fields
from gateway.http.endpoint import Deltas, Writer
from gateway.http.errors import Headers, openai_body
from gateway.http.media import MediaFamily
from gateway.http.openai.bodies import SpeechBody, VoiceId
from gateway.http.openai.offers import Offers, fitting, given_in
from gateway.http.openai.parse import Received, media_call

_VOICES: tuple[Task, ...] = ("text-to-speech", "voice-clone")
_encode = msgspec.json.encode

MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


class SpeechFamily(MediaFamily):
    """Speech, in a voice of the model's or in one like that of a sample."""

    path = "/v1/audio/speech"
    body = SpeechBody
    files = {"sample": "sample"}

    def read(self, received: Received, asked: SpeechBody) -> tuple[Call, "SpeechShape"]:
        """Parse a call. `mp3` is the default format, as the SDKs expect."""
        audio = asked.response_format or "mp3"
        offers = _readings(asked, given_in(asked, _VOICES) | {"response_format": audio})
        mode: Mode = "wait" if asked.stream_format is None else "stream"
        call = media_call(received, asked, offers, mode)
        cloned = any(task == "voice-clone" for task, _ in offers)
        return msgspec.structs.replace(call, keep=cloned), SpeechShape(asked.stream_format, audio)


def _readings(asked: SpeechBody, given: dict[str, Any]) -> Offers:
    """Say what the voice may mean: a name, or a sample of a voice by its file's id."""
    voice = asked.voice.id if isinstance(asked.voice, VoiceId) else asked.voice
    sample = asked.sample
    if sample is None and voice is not None and (isinstance(asked.voice, VoiceId) or voice.startswith("file_")):
        sample = voice
    given.pop("voice", None)
    readings: list[tuple[Task, dict[str, Any]]] = []
    if sample is not None:  # first: a model that does both is to speak like the sample
        readings.append(("voice-clone", given | {"sample": sample}))
    if asked.sample is None:
        readings.append(("text-to-speech", given if voice is None else given | {"voice": voice}))
    return fitting(readings)


class SpeechShape:
    """The whole file, its bytes as they are made, or events that carry them."""

    def __init__(self, stream_format: str | None, audio: str) -> None:
        self.stream = stream_format is not None
        self._events = stream_format == "sse"
        self._media_type = MEDIA_TYPES[audio].encode()

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Write the whole file; usage and charge stand in the headers."""
        output = answer.output if isinstance(answer.output, MediaOutput) else MediaOutput(self._media_type.decode(), 0)
        return [*answer_headers(answer), (b"content-type", output.media_type.encode())], output.data

    def writer(self, placed: Placed) -> Writer:
        """Begin a stream."""
        return SpeechEvents() if self._events else SpeechBytes(self._media_type)


class SpeechBytes:
    """Writes the bare bytes of the file; a fault breaks the connection off, for there is no place to say more."""

    def __init__(self, media_type: bytes) -> None:
        self.content_type = media_type
        self._begun = False

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas."""
        data = b"".join([delta.data for delta in deltas if isinstance(delta, AudioDelta)])
        self._begun = self._begun or bool(data)
        return data

    def end(self, answer: Answer) -> bytes:
        """Write nothing more, or all where it came in one piece."""
        return b"" if self._begun else _whole(answer)

    def broken(self, error: FaregateError) -> None:
        """Write nothing: the response stays without its end, so the connection is closed on the caller."""


class SpeechEvents:
    """Writes `speech.audio.delta` events, and `speech.audio.done` with usage and charge."""

    content_type = b"text/event-stream; charset=utf-8"

    def __init__(self) -> None:
        self._begun = False

    def deltas(self, deltas: Deltas) -> bytes:
        """Write deltas."""
        events = [_sound_event(delta.data) for delta in deltas if isinstance(delta, AudioDelta)]
        self._begun = self._begun or bool(events)
        return b"".join(events)

    def end(self, answer: Answer) -> bytes:
        """Write usage and charge, after all of it where it came in one piece."""
        units = answer.units
        usage = {
            "input_tokens": units.input_tokens,
            "output_tokens": units.output_tokens,
            "total_tokens": units.input_tokens + units.output_tokens,
            "characters": units.characters,
            "audio_ms": units.audio_ms,
            **money_fields(answer),
        }
        whole = b"" if self._begun else _whole(answer)
        before = _sound_event(whole) if whole else b""
        done = {"type": "speech.audio.done", "request_id": answer.id, "usage": usage}
        return before + b"data: " + _encode(done) + b"\n\n"

    def broken(self, error: FaregateError) -> bytes:
        """Write an error event."""
        return b"data: " + _encode(openai_body(error)) + b"\n\n"


def _whole(answer: Answer) -> bytes:
    """Give the file of an engine that does not stream."""
    return answer.output.data if isinstance(answer.output, MediaOutput) else b""


def _sound_event(data: bytes) -> bytes:
    return b'data: {"type":"speech.audio.delta","audio":"' + b64encode(data) + b'"}\n\n'
