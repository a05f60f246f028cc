"""openai-python, unmodified: images, videos, transcripts and speech."""

import base64
import io
import time
import wave
from collections.abc import Iterator
from typing import Any

import av
import httpx
import openai
import pytest
from PIL import Image

from tests.system import System

pytestmark = pytest.mark.filterwarnings("ignore:.*(Sora|deprecated).*:DeprecationWarning")


@pytest.fixture(scope="module")
def client(media_system: System) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{media_system.base_url}/v1", api_key=media_system.api_key, max_retries=0) as made:
        yield made


def picture(colour: str = "red", size: tuple[int, int] = (48, 32)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "png")
    return file.getvalue()


def sound(seconds: float = 2.0) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(16_000)
        made.writeframes(b"\0\1" * int(16_000 * seconds))
    return file.getvalue()


def shown(b64: str | None) -> Image.Image:
    assert b64 is not None
    return Image.open(io.BytesIO(base64.b64decode(b64)))


def test_images_come_as_base64_with_their_usage_and_charge(client: openai.OpenAI) -> None:
    answer = client.images.generate(model="fake-image", prompt="a gate", n=2, size="96x64", output_format="jpeg")  # type: ignore[arg-type,call-overload]
    assert [shown(item.b64_json).size for item in answer.data] == [(96, 64)] * 2
    assert (answer.output_format, answer.size, answer.background) == ("jpeg", "96x64", "opaque")
    assert (answer.usage.images, answer.usage.charge_nanos, answer.usage.cost) == (2, 20_000_000, 0.02)
    assert answer.created > 1_700_000_000


def test_images_come_as_addresses_that_need_no_key(client: openai.OpenAI) -> None:
    answer = client.images.generate(model="fake-image", prompt="a gate", response_format="url")
    assert answer.data is not None
    assert answer.data[0].url is not None
    fetched = httpx.get(answer.data[0].url, timeout=60)
    assert fetched.status_code == 200
    assert fetched.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(fetched.content)).size == (64, 64)


def test_a_stream_of_an_image_shows_it_while_it_is_drawn(client: openai.OpenAI) -> None:
    events = list(client.images.generate(model="fake-image", prompt="a gate", partial_images=2, stream=True))
    assert [event.type for event in events] == [
        "image_generation.partial_image",
        "image_generation.partial_image",
        "image_generation.completed",
    ]
    assert [event.partial_image_index for event in events[:2]] == [0, 1]  # type: ignore[union-attr]
    assert all(shown(event.b64_json).size == (64, 64) for event in events)
    assert events[-1].usage.charge_nanos == 10_000_000  # type: ignore[union-attr]
    whole = client.images.generate(model="fake-image", prompt="a gate")
    assert whole.data is not None
    assert events[-1].b64_json == whole.data[0].b64_json


def test_an_image_is_edited(client: openai.OpenAI) -> None:
    answer = client.images.edit(model="fake-image", image=picture(), mask=picture("white"), prompt="blue")
    assert answer.data is not None
    assert shown(answer.data[0].b64_json).size == (64, 64)
    assert answer.usage.charge_nanos == 10_000_000  # type: ignore[union-attr]


def test_an_edit_is_streamed(client: openai.OpenAI) -> None:
    events = list(
        client.images.edit(model="fake-image", image=picture(), prompt="blue", stream=True, partial_images=1, n=2)
    )
    assert [event.type for event in events] == ["image_edit.partial_image"] * 2 + ["image_edit.completed"] * 2


def test_several_images_are_blended(client: openai.OpenAI) -> None:
    alone = client.images.edit(model="fake-image", image=picture("red"), prompt="x", extra_body={"seed": 3})
    both = client.images.edit(
        model="fake-image", image=[picture("red"), picture("blue")], prompt="x", extra_body={"seed": 3}
    )
    assert alone.data is not None
    assert both.data is not None
    assert shown(both.data[0].b64_json).getpixel((9, 9)) != shown(alone.data[0].b64_json).getpixel((9, 9))


def test_an_edit_without_a_prompt_is_what_the_model_does(client: openai.OpenAI) -> None:
    answer = client.images.edit(model="fake-upscale", image=picture(), prompt=openai.omit, extra_body={"scale": 2})  # type: ignore[call-overload]
    assert shown(answer.data[0].b64_json).size == (96, 64)
    assert answer.usage.charge_nanos == 3_072_000


def test_an_image_is_varied(client: openai.OpenAI) -> None:
    answer = client.images.create_variation(model="fake-image", image=picture(), n=2, response_format="b64_json")
    assert answer.data is not None
    first, second = (shown(item.b64_json) for item in answer.data)
    assert first.tobytes() != second.tobytes()


@pytest.mark.parametrize(
    ("form", "begins"), [("text", "the gate opens"), ("srt", "1\n00:00:00,000 -->"), ("vtt", "WEBVTT")]
)
def test_a_transcript_comes_as_text_and_as_subtitles(client: openai.OpenAI, form: Any, begins: str) -> None:
    answer = client.audio.transcriptions.create(model="fake-ears", file=("a.wav", sound()), response_format=form)
    assert str(answer).startswith(begins)


def test_a_transcript_tells_words_segments_and_charge(client: openai.OpenAI) -> None:
    plain = client.audio.transcriptions.create(model="fake-ears", file=("a.wav", sound()))
    assert plain.text == "the gate opens at dawn and every fare"
    assert plain.usage.seconds == 2.0  # type: ignore[union-attr]
    assert plain.usage.charge_nanos == 200_000  # type: ignore[union-attr]
    verbose = client.audio.transcriptions.create(
        model="fake-ears",
        file=("a.wav", sound()),
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
        language="de",
    )
    assert (verbose.language, verbose.duration, verbose.text) == ("de", 2.0, plain.text)
    assert verbose.words is not None
    assert verbose.segments is not None
    assert [word.word for word in verbose.words] == plain.text.split()
    assert (verbose.segments[0].start, verbose.segments[0].end) == (0.0, 2.0)


def test_a_transcript_is_streamed(client: openai.OpenAI) -> None:
    events = list(client.audio.transcriptions.create(model="fake-ears", file=("a.wav", sound()), stream=True))
    assert [event.type for event in events] == ["transcript.text.delta"] * 8 + ["transcript.text.done"]
    assert "".join(event.delta for event in events[:-1]) == events[-1].text  # type: ignore[union-attr]


def test_a_translation_is_in_english(client: openai.OpenAI) -> None:
    answer = client.audio.translations.create(
        model="fake-ears", file=("a.wav", sound()), response_format="verbose_json"
    )
    assert answer.language == "en"  # type: ignore[union-attr]
    assert answer.text.startswith("the gate")


def test_speech_of_a_voice_that_lies_in_a_file(client: openai.OpenAI) -> None:
    kept = client.files.create(file=("me.wav", sound()), purpose="user_data")
    answer = client.audio.speech.create(
        model="fake-clone", voice={"id": kept.id}, input="Mind the gap.", response_format="wav"
    )
    with wave.open(io.BytesIO(answer.content)) as heard:
        assert heard.getnframes() / heard.getframerate() == 0.65
    assert answer.response.headers["x-faregate-charge-nanos"] == "390000"


def test_speech_in_a_voice_of_the_models(client: openai.OpenAI) -> None:
    answer = client.audio.speech.create(model="fake-voice", voice="alloy", input="Mind the gap.")
    with av.open(io.BytesIO(answer.content)) as file:
        assert file.format.name == "mp3"
    with client.audio.speech.with_streaming_response.create(
        model="fake-voice", voice="alloy", input="Mind the gap.", stream_format="audio"
    ) as stream:
        assert b"".join(stream.iter_bytes()) == answer.content


def test_a_video_is_made_looked_at_fetched_and_thrown_away(client: openai.OpenAI) -> None:
    video = client.videos.create_and_poll(model="fake-video", prompt="a gate", seconds="2", size="64x48")  # type: ignore[arg-type]
    assert (video.status, video.progress, video.object) == ("completed", 100, "video")
    assert (video.prompt, video.seconds, video.size) == ("a gate", "2", "64x48")
    assert video.charge_nanos == 200_000_000  # type: ignore[attr-defined]
    assert video.completed_at is not None
    assert video.expires_at is not None
    with av.open(io.BytesIO(client.videos.download_content(video.id).content)) as film:
        assert sum(1 for _ in film.decode(video=0)) == 16
    thumbnail = client.videos.download_content(video.id, variant="thumbnail").content
    assert Image.open(io.BytesIO(thumbnail)).size == (64, 48)
    sheet = client.videos.download_content(video.id, variant="spritesheet").content
    assert Image.open(io.BytesIO(sheet)).size == (192, 144)
    gone = client.videos.delete(video.id)
    assert (gone.id, gone.deleted, gone.object) == (video.id, True, "video.deleted")
    with pytest.raises(openai.NotFoundError):
        client.videos.retrieve(video.id)


def test_a_video_is_remixed(client: openai.OpenAI) -> None:
    first = client.videos.create_and_poll(model="fake-video", prompt="a gate", input_reference=("a.png", picture()))
    assert first.size == "64x48"
    made = client.videos.remix(first.id, prompt="a gate at night")
    again = client.videos.poll(made.id)
    assert again.status == "completed"
    assert (again.remixed_from_video_id, again.prompt) == (first.id, "a gate at night")
    assert (again.size, again.seconds) == (first.size, first.seconds)


def test_videos_are_listed_a_page_at_a_time(media_system: System) -> None:
    _, key = media_system.account(f"lister-{time.time_ns()}", "10")
    with openai.OpenAI(base_url=f"{media_system.base_url}/v1", api_key=key, max_retries=0) as client:
        ids = [client.videos.create(model="fake-video", prompt=f"gate {at}").id for at in range(5)]
        for each in ids:
            client.videos.poll(each)
        page = client.videos.list(limit=2)
        assert [video.id for video in page.data] == [ids[4], ids[3]]
        assert page.has_more
        assert [video.id for video in client.videos.list(limit=2)] == ids[::-1]
        assert [video.id for video in client.videos.list(limit=2, order="asc")] == ids
        client.videos.delete(ids[2])
        assert [video.id for video in client.videos.list(after=ids[3])] == [ids[1], ids[0]]


def test_a_video_that_fails_says_why(client: openai.OpenAI) -> None:
    video = client.videos.create_and_poll(model="fake-video", prompt="fake:fail")
    assert video.status == "failed"
    assert video.error is not None
    assert video.error.code == "engine_error"
    with pytest.raises(openai.ConflictError):
        client.videos.download_content(video.id)
