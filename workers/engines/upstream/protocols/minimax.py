"""MiniMax's own API: speech, speech in a cloned voice, music and images in one exchange, videos as tasks.

    POST /v1/t2a_v2               {data: {audio: HEX, status}, extra_info, base_resp}; streamed, as events of that shape
    POST /v1/files/upload         a form of `purpose` and `file`: {file: {file_id}}
    POST /v1/voice_clone          {file_id, voice_id}; the voice is then spoken with, and removed
    POST /v1/delete_voice         {voice_type: "voice_cloning", voice_id}
    POST /v1/music_generation     {data: {audio: HEX}, ...}
    POST /v1/image_generation     {data: {image_urls}, metadata, base_resp}
    videos                        see `minimax_films`

Every answer has `base_resp` {status_code, status_msg}, and fails with status 200. The last event of streamed speech
repeats the whole sound. The key is the API key, or "GROUP:KEY" for accounts whose calls must name their group.
"""

import asyncio
from typing import Any

import msgspec

from gateway.contract.events import AudioDelta, Output
from gateway.contract.inputs import ImageInput, ImageToVideoInput, MusicInput, SpeechInput, VideoInput, VoiceCloneInput
from gateway.contract.states import Reason
from workers.engine import EngineError, RefusedInput
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.attached import as_data_uri, attached
from workers.engines.upstream.failures import UpstreamFailed, blocked, clean, refused, retry_after, unreadable
from workers.engines.upstream.fields import wire
from workers.engines.upstream.link import FormFile, query_text
from workers.engines.upstream.media import media_type_of
from workers.engines.upstream.protocol import Call, Direct, Jobs, Wire
from workers.engines.upstream.protocols.minimax_films import Films
from workers.engines.upstream.results import Found, copied, place, seed_of, text_at
from workers.engines.upstream.verdicts import limited, reason_in
from workers.engines.upstream.waves import RATE

SPEECH_FIELDS = {
    "input": "text",
    "voice": "voice_setting.voice_id",
    "speed": "voice_setting.speed",
    "language": "language_boost",
    "response_format": "audio_setting.format",
}
MUSIC_FIELDS = {"prompt": "prompt", "response_format": "audio_setting.format"}
CLONE_FIELDS = {
    "need_noise_reduction": "need_noise_reduction",
    "need_volume_normalization": "need_volume_normalization",
    "need_volumn_normalization": "need_volume_normalization",
}
"""Fields of a model that belong to the making of its voice; one is misspelt where MiniMax's models are resold."""
IMAGE_FIELDS = {"prompt": "prompt", "n": "n", "seed": "seed", "size": "width as width, height as height"}
FORMATS = ("mp3", "pcm", "flac", "wav")
SAMPLES = ("mp3", "m4a", "wav")
SAMPLE_TYPES = {"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wav": "wav"}
REMOVE_S = 10.0

LIMITED = frozenset((1002, 1008, 1039, 1041, 2045, 2056))
"""Too fast, no balance, too many tokens or connections, growing too fast, used up: codes of its table, as all below."""
BLOCKED = frozenset((1026, 1027))
REFUSED = frozenset((1042, 2013, 2037, 2038, 2039, 2042, 2048))
KEYS = frozenset((1004, 2049))


class BaseResponse(msgspec.Struct):
    """How a call went."""

    status_code: int = 0
    status_msg: str = ""


class Envelope(msgspec.Struct):
    """What every answer has."""

    base_resp: BaseResponse | None = None


_ENVELOPE = msgspec.json.Decoder(Envelope)


class MiniMax(Wire):
    """Speaks to MiniMax."""

    def __init__(self) -> None:
        self._films = Films()

    def authorize(self, key: str) -> dict[str, str]:
        """Give the key, without its group."""
        return {"authorization": f"Bearer {key.rpartition(':')[2]}"}

    def judge(self, answer: Answer) -> Exception | None:
        """Read `base_resp`."""
        try:
            told = _ENVELOPE.decode(answer.body).base_resp
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return None if told is None else verdict(told, answer)

    def way(self, call: Call) -> Direct | Jobs:
        """Take videos as tasks, the rest in one exchange."""
        given = call.run.input
        if isinstance(given, VideoInput | ImageToVideoInput):
            return self._films
        if isinstance(given, SpeechInput | VoiceCloneInput | MusicInput | ImageInput):
            return self
        raise EngineError(f"The upstream {call.upstream.name} does not do {call.run.request.task}.")

    async def perform(self, call: Call) -> Output:
        """Make the call of the task."""
        given = call.run.input
        if isinstance(given, SpeechInput):
            return await _spoken(call, _speech(call))
        if isinstance(given, VoiceCloneInput):
            return await _cloned(call, given)
        if isinstance(given, MusicInput):
            return await _music(call)
        return await _images(call)


def verdict(told: BaseResponse, answer: Answer) -> Exception | None:
    """Say what a code means; None for success."""
    code, words = told.status_code, told.status_msg
    if code == 0:
        return None
    detail = f"HTTP {answer.status}, code {code}: {clean(words)}"
    if code in LIMITED:
        return limited(detail, retry_after(answer.headers))
    if code in BLOCKED:
        return blocked(words)
    if code in REFUSED:
        return refused(words, detail=detail)
    if code in KEYS:
        return UpstreamFailed("The provider does not accept this system's key.", detail=detail, wide=True)
    reason: Reason = "upstream_timeout" if code == 1001 else "upstream_error"
    return UpstreamFailed("The provider failed.", reason=reason, detail=detail, sent=True)


def at(call: Call, path: str) -> str:
    """Give a path, with the group of the account where its key names one."""
    group = call.link.key.rpartition(":")[0]
    return f"{path}?{query_text({'GroupId': group})}" if group else path


def _speech(call: Call, voice: str = "") -> dict[str, Any]:
    given = call.run.input
    assert isinstance(given, SpeechInput | VoiceCloneInput)
    form = given.response_format or "mp3"
    if form not in FORMATS or (form == "wav" and call.run.heard):
        raise RefusedInput(f"This provider does not give {form}: choose another response_format.")
    body = wire(call, SPEECH_FIELDS)
    body["model"] = call.target.model
    body["output_format"] = "hex"
    setting = body.setdefault("audio_setting", {})
    setting.setdefault("format", form)
    if form == "pcm":
        setting.update(sample_rate=RATE, channel=1)
    if voice:
        body.setdefault("voice_setting", {})["voice_id"] = voice
    elif not text_at(body, "voice_setting", "voice_id") and not body.get("timbre_weights"):
        raise RefusedInput("This provider needs a `voice`.")
    return body


async def _spoken(call: Call, body: dict[str, Any]) -> Output:
    if call.run.heard:
        sound = await _streamed(call, body)
    else:
        sound = hex_of(await call.link.json("POST", at(call, "/v1/t2a_v2"), json={**body, "stream": False}))
    raw = place(body, "audio_setting", "format") == "pcm"
    return await copied(call, [Found(data=sound, declared="audio/pcm" if raw else "")])


async def _streamed(call: Call, body: dict[str, Any]) -> bytes:
    """Pass sound on as it comes; the last event says that all has come, and may repeat it."""
    asked = {**body, "stream": True, "stream_options": {"exclude_aggregated_audio": True}}
    pieces: list[bytes] = []
    ended = False
    async with call.link.stream("POST", at(call, "/v1/t2a_v2"), json=asked) as opened:
        if "event-stream" not in opened.headers.get("content-type", ""):
            body_bytes = b"".join([piece async for piece in opened.pieces()])
            answer = Answer(opened.status, opened.headers, body_bytes)
            raise _fault(answer) or unreadable("no events where sound was to be streamed")
        async for event in opened.events():
            answer = Answer(opened.status, opened.headers, event.data)
            if (error := _fault(answer)) is not None:
                raise error
            told = answer.json()
            ended = place(told, "data", "status") == 2
            if place(told, "data", "audio") and not (ended and pieces):
                pieces.append(hex_of(told))
                call.run.emit(AudioDelta(pieces[-1]))
    if not ended:
        raise unreadable("the stream of sound broke off")
    return b"".join(pieces)


def _fault(answer: Answer) -> Exception | None:
    try:
        told = _ENVELOPE.decode(answer.body).base_resp
    except (msgspec.DecodeError, UnicodeDecodeError):
        return unreadable("an event that is no JSON")
    return None if told is None else verdict(told, answer)


async def _cloned(call: Call, given: VoiceCloneInput) -> Output:
    """Make a voice of the sample, speak with it, and remove it, whatever happens in between."""
    media_type = media_type_of(given.sample)
    ending = SAMPLE_TYPES.get(media_type)
    if ending is None:
        raise RefusedInput(f"This provider takes samples as {', '.join(SAMPLES)}, and no {media_type}.")
    voice = "faregate-" + call.reference.replace("_", "-")
    body = _speech(call, voice)
    told = await call.link.form(
        at(call, "/v1/files/upload"),
        fields={"purpose": "voice_clone"},
        files=[FormFile("file", f"sample.{ending}", await call.parcels.content(given.sample), media_type)],
    )
    file_id = place(told.object(), "file", "file_id")
    if not isinstance(file_id, int | str):
        raise unreadable("no file_id for a sample")
    made: dict[str, Any] = {"file_id": file_id, "voice_id": voice}
    for name, theirs in CLONE_FIELDS.items():
        if name in body:
            made[theirs] = body.pop(name)
    try:
        await call.link.call("POST", at(call, "/v1/voice_clone"), json=made)
        return await _spoken(call, body)
    finally:
        await asyncio.shield(_remove(call, voice))


async def _remove(call: Call, voice: str) -> None:
    """Remove a voice. What stays goes by itself: MiniMax forgets voices that go unused for a week."""
    try:
        async with asyncio.timeout(REMOVE_S):
            gone = {"voice_type": "voice_cloning", "voice_id": voice}
            await call.link.call("POST", at(call, "/v1/delete_voice"), json=gone)
    except (EngineError, RefusedInput, TimeoutError):
        return


async def _music(call: Call) -> Output:
    given = call.run.input
    assert isinstance(given, MusicInput)
    form = given.response_format or "mp3"
    if form not in ("mp3", "wav", "pcm"):
        raise RefusedInput(f"This provider does not give {form}: choose another response_format.")
    body = wire(call, MUSIC_FIELDS)
    body.update(model=call.target.model, output_format="hex", stream=False)
    setting = body.setdefault("audio_setting", {})
    setting.setdefault("format", form)
    if form == "pcm":
        setting.update(sample_rate=RATE, channel=1)
    sound = hex_of(await call.link.json("POST", at(call, "/v1/music_generation"), json=body))
    return await copied(call, [Found(data=sound, declared="audio/pcm" if form == "pcm" else "")])


async def _images(call: Call) -> Output:
    body = wire(call, IMAGE_FIELDS, media=await attached(call, as_data_uri))
    body.update(model=call.target.model, response_format="url")
    told = await call.link.json("POST", at(call, "/v1/image_generation"), json=body)
    urls = place(told, "data", "image_urls")
    seed = seed_of(body.get("seed"))
    found = [Found(url=each, seed=seed) for each in urls if isinstance(each, str)] if isinstance(urls, list) else []
    if not found and place(told, "metadata", "failed_count") not in (None, 0, "0"):
        raise blocked("none of the images passed")
    return await copied(call, found)


def hex_of(told: Any) -> bytes:
    """Read sound that came as hexadecimal digits."""
    text = text_at(told, "data", "audio")
    try:
        sound = bytes.fromhex(text)
    except ValueError:
        raise unreadable("sound that is not hexadecimal") from None
    if not sound:
        words = text_at(told, "base_resp", "status_msg")
        raise unreadable(f"no sound in the answer ({reason_in(words)})")
    return sound
