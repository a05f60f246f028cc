"""Media: inline for who waits, a file of the attempt for who comes back, and nothing of an attempt that lost."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.blobs.names import output_name
from gateway.contract.events import AudioDelta, Ended, MediaOutput
from gateway.contract.ids import admitted_ms
from gateway.contract.inputs import SpeechInput
from gateway.contract.pools import ServedModel

if TYPE_CHECKING:
    from tests.unit.workers.conftest import Pool

VOICE = ServedModel(name="voice", tasks=["text-to-speech"])
WORDS = SpeechInput(input="Every fare is counted once.", response_format="wav")


@pytest.fixture
async def speaking(pool: "Pool") -> "Pool":
    """Answer a pool that speaks."""
    await pool.serve(VOICE, engine="speech")
    return pool


def files(folder: Path) -> list[Path]:
    """List what is stored; what is being written does not count."""
    return [path for path in folder.glob("[0-9]*/**/*") if path.is_file()]


def media(end: Ended) -> MediaOutput:
    assert isinstance(end.output, MediaOutput), end
    return end.output


async def heard_end(pool: "Pool", request_id: str) -> Ended:
    await pool.until(lambda: any(isinstance(frame.event, Ended) for frame in pool.frames_of(request_id)))
    end = pool.frames_of(request_id)[-1].event
    assert isinstance(end, Ended)
    return end


async def test_who_waits_gets_the_file_in_the_reply(speaking: "Pool") -> None:
    speaking.start()
    request_id = await speaking.submit("voice", WORDS, task="text-to-speech")
    output = media(await heard_end(speaking, request_id))
    assert output.media_type == "audio/wav"
    assert output.data.startswith(b"RIFF")
    assert (output.size_bytes, output.blob) == (len(output.data), "")
    assert files(speaking.blob_dir) == []


async def test_a_kept_file_lies_under_the_name_of_its_attempt(speaking: "Pool") -> None:
    speaking.start()
    request_id = await speaking.submit("voice", WORDS, task="text-to-speech", keep=True)
    (end,) = await speaking.ended()
    output = media(end)
    assert output.blob.endswith(f"/{request_id}-1.wav")
    assert output.blob == output_name(request_id, 1, "audio/wav")
    assert output.data == b""
    (path,) = files(speaking.blob_dir)
    assert path == speaking.blob_dir / output.blob
    assert path.stat().st_size == output.size_bytes
    assert path.read_bytes().startswith(b"RIFF")
    assert end.phases.store_us > 0
    assert end.phases.forward_us > 0


async def test_a_file_too_large_for_redis_goes_to_the_folder(speaking: "Pool") -> None:
    speaking.start(inline_bytes=1000)
    request_id = await speaking.submit("voice", WORDS, task="text-to-speech")
    output = media(await heard_end(speaking, request_id))
    assert output.data == b""
    assert (speaking.blob_dir / output.blob).stat().st_size == output.size_bytes


async def test_who_streams_gets_the_sound_once(speaking: "Pool") -> None:
    speaking.start(inline_bytes=1000)
    request_id = await speaking.submit("voice", WORDS, task="text-to-speech", stream=True)
    end = await heard_end(speaking, request_id)
    sound = b"".join(
        frame.event.data for frame in speaking.frames_of(request_id) if isinstance(frame.event, AudioDelta)
    )
    assert len(sound) == media(end).size_bytes
    assert (media(end).data, media(end).blob) == (b"", "")
    assert files(speaking.blob_dir) == []


async def test_a_stream_that_is_kept_leaves_a_file_and_no_sound_in_the_event_log(speaking: "Pool") -> None:
    speaking.start()
    request_id = await speaking.submit("voice", WORDS, task="text-to-speech", stream=True, keep=True)
    (end,) = await speaking.ended()
    assert (speaking.blob_dir / media(end).blob).exists()
    assert any(isinstance(frame.event, AudioDelta) for frame in speaking.frames_of(request_id))
    logged = [event async for _, event in speaking.queue.events(request_id)]
    assert not any(isinstance(event, AudioDelta) for event in logged)
    assert isinstance(logged[-1], Ended)


async def test_an_attempt_that_lost_leaves_no_file(speaking: "Pool") -> None:
    """Its lease runs out while it cannot say that it has ended; the next attempt's file is the only one."""
    queue = speaking.unsteady()
    speaking.start(queue, max_concurrency=1)
    await speaking.until_ready()
    request_id = await speaking.submit("voice", WORDS, task="text-to-speech", keep=True)
    queue.away = True
    await speaking.until(lambda: [path.suffix for path in files(speaking.blob_dir)] == [".wav"])
    (lost,) = files(speaking.blob_dir)
    await speaking.expire_leases()
    speaking.start()
    (end,) = await speaking.ended()
    assert (end.id, end.attempt) == (request_id, 2)
    queue.away = False
    await speaking.until(lambda: not lost.exists())
    assert files(speaking.blob_dir) == [speaking.blob_dir / media(end).blob]


async def test_a_folder_that_takes_no_files_fails_the_request(speaking: "Pool") -> None:
    speaking.blob_dir.write_text("a file where the folder should be")
    speaking.start()
    await speaking.submit("voice", WORDS, task="text-to-speech", keep=True)
    (end,) = await speaking.ended()
    assert (end.outcome, end.reason) == ("failed", "engine_error")
    assert "stored" in end.detail
    assert str(speaking.blob_dir) not in end.detail


def test_names_are_sorted_by_the_day_of_admission() -> None:
    request_id = "req_01a1fd8f39ed70a58897e298f2bb4b67"
    assert admitted_ms(request_id) // 86_400_000 == 20778
    assert output_name(request_id, 2, "audio/mpeg") == "2026/11/21/req_01a1fd8f39ed70a58897e298f2bb4b67-2.mp3"
