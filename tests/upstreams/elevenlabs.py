"""A stand-in for ElevenLabs: sound as it comes, voices that are made and removed, and errors with a status in words."""

import itertools
from typing import Any

from tests.media.samples import sound
from tests.upstreams.serving import Asked, Reply, StandIn, said

RATE = 24_000
VOICE = "21m00Tcm4TlvDq8ikWAM"


def samples(seconds: int = 2) -> bytes:
    """Give raw sound: 16 bits, one channel."""
    return sound("wav", "pcm_s16le", seconds, RATE)[-RATE * 2 * seconds :]


def fault(status: int, word: str, message: str) -> Reply:
    """Answer an error."""
    return said({"detail": {"status": word, "message": message}}, status)


class ElevenLabs(StandIn):
    """The API."""

    def __init__(self) -> None:
        super().__init__()
        self.voices: dict[str, str] = {VOICE: "Rachel"}
        self.samples: dict[str, bytes] = {}
        self.verify = False
        self._numbers = itertools.count()

    def authorized(self, asked: Asked) -> bool:
        """Take the key in its own header."""
        return asked.headers.get("xi-api-key") == self.key and "authorization" not in asked.headers

    def unauthorized(self) -> Reply:
        """Refuse a wrong key."""
        return fault(401, "invalid_api_key", "Invalid API key")

    async def answer(self, asked: Asked) -> Reply:
        """Serve the calls."""
        parts = asked.path.strip("/").split("/")
        if parts[:2] == ["v1", "text-to-speech"] and asked.method == "POST":
            return self._speak(parts, asked)
        if asked.path == "/v1/music":
            return self._sound(asked)
        if asked.path == "/v1/speech-to-text":
            return said(self._hear(asked))
        if asked.path == "/v1/voices/add":
            return self._add(asked)
        if asked.path == "/v1/voices":
            return said({"voices": [{"voice_id": each, "name": name} for each, name in self.voices.items()]})
        if parts[:2] == ["v1", "voices"] and asked.method == "DELETE":
            return said({"status": "ok"}) if self.voices.pop(parts[2], None) else fault(400, "voice_does_not_exist", "")
        return said({"detail": "Not Found"}, 404)

    def _speak(self, parts: list[str], asked: Asked) -> Reply:
        if parts[2] not in self.voices:
            return fault(400, "voice_not_found", "A voice with this id does not exist")
        return self._sound(asked)

    def _sound(self, asked: Asked) -> Reply:
        form = asked.query.get("output_format", "mp3_44100_128")
        if form.startswith("pcm"):
            data, media_type = samples(), "audio/pcm"
        elif form.startswith("opus"):
            data, media_type = sound("ogg", "libopus", 2, 48_000), "audio/opus"
        else:
            data, media_type = sound("mp3", "libmp3lame", 2, 44_100), "audio/mpeg"
        pieces = [data[at : at + 4096] for at in range(0, len(data), 4096)]
        headers = {"character-cost": "5", "request-id": f"r{next(self._numbers)}"}
        return Reply(200, pieces if asked.path.endswith("/stream") else data, media_type, headers)

    def _add(self, asked: Asked) -> Reply:
        form = asked.form()
        voice = f"clone{next(self._numbers)}"
        self.voices[voice] = form["name"][1].decode()
        self.samples[voice] = form["files"][1]
        return said({"voice_id": voice, "requires_verification": self.verify})

    def _hear(self, asked: Asked) -> dict[str, Any]:
        assert asked.form()["file"][1]
        words = [{"text": "Hello", "start": 0.1, "end": 0.5, "type": "word", "speaker_id": "s"},
                 {"text": " ", "start": 0.5, "end": 0.6, "type": "spacing"},
                 {"text": "there", "start": 0.6, "end": 1.0, "type": "word"},
                 {"text": "(laughs)", "start": 1.0, "end": 1.5, "type": "audio_event"}]  # fmt: skip
        return {"language_code": "en", "language_probability": 0.98, "text": "Hello there", "words": words}
