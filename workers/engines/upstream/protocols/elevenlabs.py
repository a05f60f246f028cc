"""ElevenLabs: speech, speech in a cloned voice, music, and transcripts, each in one exchange.

    POST   /v1/text-to-speech/VOICE[/stream]?output_format=   {text, model_id, voice_settings, ...}, answered by sound
    POST   /v1/voices/add                                     a form of `name` and `files`: {voice_id, ...}
    DELETE /v1/voices/VOICE
    POST   /v1/music?output_format=                           {prompt, music_length_ms, model_id}, answered by sound
    POST   /v1/speech-to-text                                 a form of `model_id` and `file`: {text, words, ...}

Errors are `{detail: {status, message}}`; a used-up quota is a 401. `character-cost` in an answer's headers counts
credits, which are no money. A cloned voice is made for one request and removed after it; it is named after the request,
so that a later attempt finds and removes one that a worker left behind as it died.
"""

import asyncio
from typing import Any

from gateway.contract.events import AudioDelta, Output, Segment, TranscriptOutput
from gateway.contract.inputs import (
    MusicInput,
    SpeechInput,
    TranscriptionInput,
    VoiceCloneInput,
)
from workers.engine import EngineError, RefusedInput
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.failures import UpstreamFailed, blocked, clean, unreadable, words_of
from workers.engines.upstream.fields import wire
from workers.engines.upstream.link import FormFile, query_text
from workers.engines.upstream.media import media_type_of
from workers.engines.upstream.protocol import Call, Direct, Jobs, Wire
from workers.engines.upstream.results import Found, copied, place, text_at
from workers.engines.upstream.transcripts import heard_ms
from workers.engines.upstream.verdicts import buying, limited, reason_in
from workers.engines.upstream.waves import RATE, with_header

SPEECH_FIELDS = {
    "input": "text",
    "language": "language_code",
    "speed": "voice_settings.speed",
    "seed": "seed",
}
MUSIC_FIELDS = {
    "prompt": "prompt",
    "seconds": "music_length_ms as milliseconds",
    "seed": "seed",
}
FORMATS = {
    "mp3": "mp3_44100_128",
    "opus": "opus_48000_64",
    "pcm": f"pcm_{RATE}",
    "wav": f"pcm_{RATE}",
}
"""Our formats as theirs. Raw sound becomes a WAV file here."""
LIMITED = (
    "quota_exceeded",
    "too_many_concurrent_requests",
    "system_busy",
    "rate_limit_exceeded",
    "voice_limit_reached",
    "voice_add_edit_limit_reached",
    "limited_access",
)
BLOCKED = ("bad_prompt", "bad_composition_plan", "content_policy", "blocked_generation", "text_not_allowed")
REMOVE_S = 10.0
"""How long removing a voice may take, of a request that was cancelled too."""


class ElevenLabs(Wire):
    """Speaks to ElevenLabs."""

    def authorize(self, key: str) -> dict[str, str]:
        """Give the key in a header of its own."""
        return {"xi-api-key": key}

    def judge(self, answer: Answer) -> Exception | None:
        """Read `detail.status`, which says more than the status."""
        if answer.status < 400:
            return None
        words = words_of(answer.body)
        try:
            status = text_at(answer.json(), "detail", "status")
        except UpstreamFailed:
            status = ""
        detail = f"HTTP {answer.status} {clean(status)}: {clean(words)}"
        if status in LIMITED:
            return limited(detail)
        if status in BLOCKED:
            return blocked(words)
        if status == "voice_not_found":
            return RefusedInput("The provider does not have this voice.")
        return blocked(words) if answer.status in (400, 422) and reason_in(words) == "blocked" else None

    def way(self, call: Call) -> Direct | Jobs:
        """Take the tasks about sound."""
        if not isinstance(call.run.input, SpeechInput | VoiceCloneInput | MusicInput | TranscriptionInput):
            raise EngineError(f"The upstream {call.upstream.name} does not do {call.run.request.task}.")
        return self

    async def perform(self, call: Call) -> Output:
        """Make the call of the task."""
        given = call.run.input
        if isinstance(given, SpeechInput):
            if not given.voice:
                raise RefusedInput("This provider needs a `voice`.")
            return await _spoken(call, given.voice)
        if isinstance(given, VoiceCloneInput):
            return await _cloned(call, given)
        if isinstance(given, MusicInput):
            body = wire(call, MUSIC_FIELDS)
            body["model_id"] = call.target.model
            return await _sound(call, "/v1/music", body, given.response_format)
        assert isinstance(given, TranscriptionInput)
        return await _transcribed(call, given)


async def _spoken(call: Call, voice: str) -> Output:
    given = call.run.input
    assert isinstance(given, SpeechInput | VoiceCloneInput)
    if not voice.replace("-", "").replace("_", "").isalnum() or len(voice) > 128:
        raise RefusedInput("The provider does not have this voice.")
    body = wire(call, SPEECH_FIELDS)
    body["model_id"] = call.target.model
    path = f"/v1/text-to-speech/{voice}" + ("/stream" if call.run.heard else "")
    return await _sound(call, path, body, given.response_format)


async def _sound(call: Call, path: str, body: dict[str, Any], wanted: str | None) -> Output:
    """Ask for sound, pass it on as it comes, and measure the whole."""
    run = call.run
    form = wanted or "mp3"
    if form not in FORMATS:
        raise RefusedInput(f"This provider gives {', '.join(FORMATS)}, and no {form}: choose another response_format.")
    asked = str(body.pop("output_format", "")) or FORMATS[form]
    pieces: list[bytes] = []
    full = f"{path}?{query_text({'output_format': asked})}"
    with buying():
        async with call.link.stream("POST", full, json=body) as opened:
            if "json" in opened.headers.get("content-type", ""):
                raise unreadable("JSON where sound was asked for")
            if run.heard and form == "wav":
                run.emit(AudioDelta(with_header(b"")))
            async for piece in opened.pieces():
                pieces.append(piece)
                if run.heard:
                    run.emit(AudioDelta(piece))
    data = b"".join(pieces)
    if not data:
        raise unreadable("sound of no length")
    if form == "wav":
        data = with_header(data)
    return await copied(call, [Found(data=data, declared="audio/pcm" if form == "pcm" else "")])


async def _cloned(call: Call, given: VoiceCloneInput) -> Output:
    """Make a voice of the sample, speak with it, and remove it, whatever happens in between."""
    name = f"faregate {call.run.request.id}"
    if call.run.attempt > 1:
        await _remove_leftovers(call, name)
    sample = await call.parcels.content(given.sample)
    answer = await call.link.form(
        "/v1/voices/add",
        fields={"name": name},
        files=[FormFile("files", "sample", sample, media_type_of(given.sample))],
    )
    voice = text_at(answer.object(), "voice_id")
    if not voice.isalnum():
        raise unreadable("no voice_id for a new voice")
    try:
        if answer.object().get("requires_verification") is True:
            raise UpstreamFailed("The provider wants this voice verified first.", detail="requires_verification")
        return await _spoken(call, voice)
    finally:
        await asyncio.shield(_remove(call, voice))


async def _remove(call: Call, voice: str) -> None:
    """Remove a voice; one that stays is the operator's to find, under the name of its request."""
    try:
        async with asyncio.timeout(REMOVE_S):
            await call.link.call("DELETE", f"/v1/voices/{voice}")
    except (EngineError, RefusedInput, TimeoutError):
        return


async def _remove_leftovers(call: Call, name: str) -> None:
    try:
        told = await call.link.json("GET", "/v1/voices")
    except (EngineError, RefusedInput):
        return
    listed = place(told, "voices")
    for each in listed if isinstance(listed, list) else []:
        if text_at(each, "name") == name and text_at(each, "voice_id").isalnum():
            await _remove(call, text_at(each, "voice_id"))


async def _transcribed(call: Call, given: TranscriptionInput) -> TranscriptOutput:
    if given.translate:
        raise RefusedInput("This provider does not translate.")
    fields: dict[str, str] = {"model_id": call.target.model}
    if given.language:
        fields["language_code"] = given.language
    if given.temperature is not None:
        fields["temperature"] = str(given.temperature)
    for name, value in {**(given.extra or {}), **call.target.fixed}.items():
        fields[name] = value if isinstance(value, str) else str(value).lower()
    data = await call.parcels.content(given.file)
    with buying():
        answer = await call.link.form(
            "/v1/speech-to-text",
            fields=fields,
            files=[FormFile("file", "sound", data, media_type_of(given.file))],
        )
    told = answer.object()
    text = told.get("text")
    if not isinstance(text, str):
        raise unreadable("a transcript without text")
    words = [word for each in told.get("words") or [] if (word := _word(each))]
    return TranscriptOutput(
        text=text,
        language=text_at(told, "language_code"),
        duration_ms=heard_ms(call),
        words=words,
    )


def _word(value: Any) -> Segment | None:
    start, end = place(value, "start"), place(value, "end")
    if place(value, "type") not in (None, "word") or not isinstance(start, int | float):
        return None
    return Segment(round(start * 1000), round((end if isinstance(end, int | float) else start) * 1000),
                   text_at(value, "text"))  # fmt: skip
