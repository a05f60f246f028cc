"""The protocol `elevenlabs`, against a stand-in for its API."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.events import Segment, TranscriptOutput
from tests.engines.upstream.driver import Driver, driving, model, upload
from tests.engines.upstream.several import holds
from tests.media.samples import sound
from tests.upstreams.elevenlabs import VOICE, ElevenLabs, fault, samples
from tests.upstreams.serving import Reply, said, standing

MODELS = (
    model("v3", "text-to-speech", wire="eleven_v3", fields={"stability": "voice_settings.stability"}),
    model("clone", "voice-clone", wire="eleven_multilingual_v2"),
    model("music", "music", wire="music_v1"),
    model("scribe", "speech-to-text", wire="scribe_v1", tag_audio_events=False),
)
TONE = sound("mp3", "libmp3lame", 2)
HEARD = upload(TONE, "audio/mpeg", duration_ms=2000)


@pytest.fixture(scope="module")
def server() -> Iterator[ElevenLabs]:
    stand_in = ElevenLabs()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
def labs(server: ElevenLabs) -> ElevenLabs:
    server.faults.clear()
    server.seen.clear()
    server.verify = False
    for voice in [each for each in server.voices if each != VOICE]:
        del server.voices[voice]
    return server


@pytest.fixture
async def driver(labs: ElevenLabs, tmp_path: Path) -> AsyncIterator[Driver]:
    async with driving("elevenlabs", labs, tmp_path, *MODELS) as made:
        yield made


@pytest.mark.parametrize(
    ("form", "media_type", "asked"),
    [(None, "audio/mpeg", "mp3_44100_128"), ("mp3", "audio/mpeg", "mp3_44100_128"),
     ("opus", "audio/ogg", "opus_48000_64"), ("pcm", "audio/pcm", "pcm_24000"), ("wav", "audio/wav", "pcm_24000")],
)  # fmt: skip
async def test_each_format_is_given_and_measured(
    driver: Driver, labs: ElevenLabs, form: str | None, media_type: str, asked: str
) -> None:
    attempt = driver.start("v3", "text-to-speech", input="Hello", voice=VOICE, response_format=form)
    made = await attempt.sound()
    assert made.media_type == media_type
    assert 1990 <= made.duration_ms <= 2100
    assert (attempt.units.characters, attempt.units.audio_ms) == (5, made.duration_ms)
    assert labs.seen[-1].query == {"output_format": asked}
    assert attempt.step.cost_nanos is None, "credits are no money"


async def test_what_is_sent_is_what_the_catalog_names(driver: Driver, labs: ElevenLabs) -> None:
    await driver.start("v3", "text-to-speech", input="Hello", voice=VOICE, speed=1.1, language="de",
                       extra={"stability": 0.5}).output()  # fmt: skip
    assert labs.seen[-1].path == f"/v1/text-to-speech/{VOICE}"
    assert labs.seen[-1].json() == {
        "text": "Hello", "model_id": "eleven_v3", "language_code": "de",
        "voice_settings": {"speed": 1.1, "stability": 0.5},
    }  # fmt: skip


@pytest.mark.parametrize("form", ["mp3", "pcm", "wav"])
async def test_sound_is_passed_on_as_it_comes(driver: Driver, labs: ElevenLabs, form: str) -> None:
    attempt = driver.streamed("v3", "text-to-speech", input="Hello", voice=VOICE, response_format=form)
    made = await attempt.sound()
    assert labs.seen[-1].path.endswith("/stream")
    assert len(attempt.frames) >= 4
    if form == "wav":
        assert attempt.heard[:4] == b"RIFF"
        assert attempt.heard[44:] == made.data[44:] == samples()
    else:
        assert attempt.heard == made.data


async def test_a_stream_that_breaks_off_is_a_failure(driver: Driver, labs: ElevenLabs) -> None:
    labs.fail(Reply(200, [b"ID3", b"!"], "audio/mpeg"))
    attempt = driver.streamed("v3", "text-to-speech", input="Hello", voice=VOICE)
    assert await attempt.reason() == "upstream_error"
    assert len(labs.seen) == 1, "what a caller has begun to hear is not asked for again"


@pytest.mark.parametrize("voice", [None, "nobody", "../../user", "a/b", "x" * 200])
async def test_voices_that_are_none_are_refused(driver: Driver, labs: ElevenLabs, voice: str | None) -> None:
    assert "voice" in await driver.start("v3", "text-to-speech", input="Hello", voice=voice).refusal()
    assert all(asked.path.count("/") == 3 for asked in labs.seen)


async def test_a_format_that_it_does_not_give_is_refused(driver: Driver) -> None:
    words = await driver.start("v3", "text-to-speech", input="Hello", voice=VOICE, response_format="flac").refusal()
    assert "response_format" in words


async def test_a_voice_is_made_spoken_with_and_removed(driver: Driver, labs: ElevenLabs) -> None:
    attempt = driver.start("clone", "voice-clone", input="Hello", sample=HEARD, files={"in": TONE})
    made = await attempt.sound()
    assert made.duration_ms > 1900
    assert attempt.units.characters == 5
    added, spoken, removed = labs.seen
    voice = spoken.path.rpartition("/")[2]
    assert removed.method == "DELETE"
    assert removed.path == f"/v1/voices/{voice}"
    assert labs.samples[voice] == TONE
    assert added.form()["name"][1].decode() == f"faregate {attempt.run.request.id}"


@pytest.mark.parametrize("how", ["fails", "is stopped", "must be verified"])
async def test_a_voice_is_removed_whatever_happens(driver: Driver, labs: ElevenLabs, how: str) -> None:
    if how == "fails":
        labs.fail(fault(500, "error", "no"), fault(500, "error", "no"), on="/text-to-speech/")
    elif how == "is stopped":
        labs.fail(Reply(200, [b"ID3", b"~"], "audio/mpeg"), on="/text-to-speech/")
    labs.verify = how == "must be verified"
    attempt = driver.start("clone", "voice-clone", input="Hello", sample=HEARD, files={"in": TONE})
    if how == "is stopped":
        await holds(lambda: labs.asked("POST", "/v1/text-to-speech/"))
        await attempt.stop()
        await holds(lambda: set(labs.voices) == {VOICE})
    else:
        await attempt.reason()
    assert set(labs.voices) == {VOICE}
    assert labs.asked("DELETE", "/v1/voices/")


async def test_a_voice_that_a_dead_worker_left_is_removed_by_the_next(driver: Driver, labs: ElevenLabs) -> None:
    first = driver.start("clone", "voice-clone", input="Hello", sample=HEARD, files={"in": TONE})
    await first.output()
    labs.voices["left"] = f"faregate {first.run.request.id}"
    labs.voices["other"] = "faregate req_of_somebody_else"
    given = {"input": "Hello", "sample": HEARD, "files": {"in": TONE}}
    await driver.request("clone", "voice-clone", given, request_id=first.run.request.id, number=2).output()
    assert set(labs.voices) == {VOICE, "other"}


async def test_music_is_made(driver: Driver, labs: ElevenLabs) -> None:
    attempt = driver.start("music", "music", prompt="slow", seconds=2.5)
    made = await attempt.sound()
    assert attempt.units.audio_ms == made.duration_ms > 1900
    assert labs.seen[-1].json() == {"prompt": "slow", "music_length_ms": 2500, "model_id": "music_v1"}


async def test_a_transcript_has_its_words(driver: Driver, labs: ElevenLabs) -> None:
    attempt = driver.start("scribe", "speech-to-text", file=HEARD, language="en", files={"in": TONE})
    output = await attempt.output()
    assert isinstance(output, TranscriptOutput)
    assert (output.text, output.language, output.duration_ms) == ("Hello there", "en", 2000)
    assert output.words == [Segment(100, 500, "Hello"), Segment(600, 1000, "there")]
    assert attempt.units.audio_ms == 2000
    form = {name: value[1] for name, value in labs.seen[-1].form().items()}
    assert form == {"model_id": b"scribe_v1", "language_code": b"en", "tag_audio_events": b"false", "file": TONE}


async def test_a_translation_is_refused(driver: Driver) -> None:
    attempt = driver.start("scribe", "speech-to-text", file=HEARD, translate=True, files={"in": TONE})
    assert "translate" in await attempt.refusal()


FAULTS: dict[str, tuple[Reply, str, bool]] = {
    "quota in a 401": (fault(401, "quota_exceeded", "This request exceeds your quota."), "upstream_limited", False),
    "key": (fault(401, "invalid_api_key", "Invalid API key"), "upstream_error", False),
    "busy": (fault(429, "system_busy", "The system is experiencing heavy traffic"), "upstream_limited", False),
    "many": (fault(429, "too_many_concurrent_requests", "Too many concurrent requests"), "upstream_limited", False),
    "long": (fault(400, "max_character_limit_exceeded", "Too long"), "refused", True),
    "form": (said({"detail": [{"loc": ["body", "text"], "msg": "Field required", "type": "missing"}]}, 422), "refused",
             True),
    "prompt": (fault(400, "bad_prompt", "Your prompt names an artist"), "blocked", True),
    "model": (fault(404, "model_not_found", "no"), "upstream_error", False),
    "page": (Reply(502, b"<html>Bad gateway</html>", "text/html"), "upstream_error", False),
    "json instead of sound": (said({"ok": True}), "upstream_error", False),
    "nothing": (Reply(200, b"", "audio/mpeg"), "upstream_error", False),
    "no sound": (Reply(200, b"<html>", "audio/mpeg"), "upstream_error", False),
}  # fmt: skip


@pytest.mark.parametrize("case", list(FAULTS))
async def test_errors_are_read_by_their_status_in_words(driver: Driver, labs: ElevenLabs, case: str) -> None:
    reply, reason, final = FAULTS[case]
    labs.fail(reply, reply)
    attempt = driver.start("v3", "text-to-speech", input="Hello", voice=VOICE)
    failure: Any = await attempt.error()
    assert getattr(failure, "reason", "refused") == reason
    assert getattr(failure, "final", True) is final
    assert labs.key not in f"{failure} {attempt.step.detail}"
