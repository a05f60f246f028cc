"""The media of the engine `fake`: real files, the same ones every time, within the ceiling of what they cost."""

import asyncio
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import pytest
from PIL import Image

from gateway.contract.events import (
    AudioDelta,
    Frame,
    GalleryOutput,
    ImageDelta,
    MediaOutput,
    Output,
    Progress,
    RankingOutput,
    TextDelta,
    TranscriptOutput,
)
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import (
    INPUT_TYPES,
    ImageBlendInput,
    ImageEditInput,
    ImageInput,
    ImageRelightInput,
    ImageRestyleInput,
    ImageToVideoInput,
    ImageUpscaleInput,
    Input,
    Media,
    MusicInput,
    RerankInput,
    SpeechInput,
    TalkingHeadInput,
    TranscriptionInput,
    VideoInput,
    VideoUpscaleInput,
    VoiceCloneInput,
)
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.request import Request
from gateway.contract.tasks import TASKS, Task
from gateway.contract.units import UNIT_NAMES
from gateway.pricing.quote import _BOUNDS, Priced
from workers.engine import EngineError, Run
from workers.engines.fake.engine import FakeEngine

PICTURE = BytesIO()
Image.new("RGB", (48, 32), "red").save(PICTURE, "png")
IMAGE = Media(blob="a", media_type="image/png", size_bytes=len(PICTURE.getvalue()), width=48, height=32)
SOUND = Media(blob="s", media_type="audio/wav", size_bytes=9, duration_ms=2_300)
FILM = Media(blob="v", media_type="video/mp4", size_bytes=9, width=16, height=16, duration_ms=500, frames=8)
TASK_OF = {kind: task for task, kind in INPUT_TYPES.items()}

MEDIA_INPUTS: list[Input] = [
    ImageInput(prompt="a gate", size="64x32", n=2, steps=3),
    ImageEditInput(prompt="a gate", image=IMAGE, mask=IMAGE),
    ImageBlendInput(images=[IMAGE, IMAGE], n=2),
    ImageRelightInput(image=IMAGE),
    ImageRestyleInput(image=IMAGE, prompt="ink", size="auto"),
    ImageUpscaleInput(image=IMAGE, scale=2),
    VideoInput(prompt="a gate", size="32x32", frames=5, fps=8),
    VideoInput(prompt="a gate", size="33x35", seconds=0.4),
    ImageToVideoInput(image=IMAGE, frames=3),
    VideoUpscaleInput(video=FILM, scale=2),
    TalkingHeadInput(image=IMAGE, text="Mind the gap.", fps=8),
    TalkingHeadInput(image=IMAGE, audio=SOUND),
    SpeechInput(input="Mind the gap."),
    SpeechInput(input="x", speed=0.25),
    VoiceCloneInput(input="Mind the gap.", sample=SOUND, speed=2),
    MusicInput(prompt="drums", seconds=1.5),
    TranscriptionInput(file=SOUND),
    RerankInput(query="the gate", documents=["a wall", "the gate opens", "the sea"]),
]


async def engine_with(**options: Any) -> FakeEngine:
    engine = FakeEngine(Path())
    states: dict[str, ModelState] = {}
    await engine.load([ServedModel(name="m", tasks=list(TASKS), options=options)], states.__setitem__)
    assert states == {"m": ModelState(state="ready")}
    return engine


async def read(media: Media) -> bytes:
    return PICTURE.getvalue() if media.media_type.startswith("image/") else b"some sound"


def prepare(given: Input, *, stream: bool = False) -> tuple[Run, list[Any]]:
    task: Task = TASK_OF[type(given)]
    request = Request(new_request_id(), 1, "m", task, b"", 1, stream=stream, keep=True)
    events: list[Any] = []

    def sink(_: Request, frame: Frame) -> None:
        events.append(frame.event)

    return Run(request, given, 1, sink, read), events


async def finish(engine: FakeEngine, run: Run) -> Output:
    answer = engine.run(run)
    return answer if not asyncio.iscoroutine(answer) else await answer  # type: ignore[return-value]


def items(output: Output) -> list[MediaOutput]:
    assert isinstance(output, GalleryOutput)
    return output.items


@pytest.mark.parametrize("given", MEDIA_INPUTS, ids=lambda given: type(given).__name__)
async def test_what_it_measures_is_never_above_the_ceiling_and_always_the_same(given: Input) -> None:
    engine = await engine_with()
    run, _ = prepare(given)
    first = await finish(engine, run)
    model: Priced = type("Any", (), {"context_tokens": 8192, "prompt_overhead_tokens": 0})()
    most = _BOUNDS[type(given)](model, given)
    over = [name for name in UNIT_NAMES if getattr(run.units, name) > getattr(most, name)]
    assert over == []
    assert any(getattr(run.units, name) for name in UNIT_NAMES)
    assert run.forward_began
    again, _ = prepare(given)
    assert await finish(engine, again) == first
    assert again.units == run.units
    assert engine.capacity() == 512


@pytest.mark.parametrize("form", ["png", "jpeg", "webp"])
async def test_images_have_their_size_format_and_seed(form: Any) -> None:
    engine = await engine_with()
    run, _ = prepare(ImageInput(prompt="a gate", size="64x32", n=3, seed=7, steps=5, output_format=form))
    made = items(await finish(engine, run))
    assert [item.seed for item in made] == [7, 8, 9]
    assert len({item.data for item in made}) == 3
    for item in made:
        picture = Image.open(BytesIO(item.data))
        assert (picture.size, picture.format) == ((64, 32), form.upper())
        assert (item.width, item.height, item.media_type) == (64, 32, f"image/{form}")
    assert (run.units.images, run.units.pixels, run.units.steps) == (3, 3 * 64 * 32, 15)


async def test_previews_go_to_a_caller_who_streams_and_progress_to_everyone() -> None:
    engine = await engine_with(steps=8)
    run, events = prepare(ImageInput(prompt="a gate", size="64x64", n=2, partial_images=3), stream=True)
    await finish(engine, run)
    previews = [event for event in events if isinstance(event, ImageDelta)]
    assert [(event.preview, event.index) for event in previews] == [(p, i) for p in range(3) for i in range(2)]
    assert all(Image.open(BytesIO(event.data)).format == "JPEG" for event in previews)
    assert [event.fraction for event in events if isinstance(event, Progress)] == [at / 8 for at in range(1, 9)]
    silent, events = prepare(ImageInput(prompt="a gate", size="64x64", partial_images=3))
    await finish(engine, silent)
    assert {type(event) for event in events} == {Progress}


async def test_a_video_plays_and_has_a_thumbnail_and_a_sheet() -> None:
    engine = await engine_with()
    run, _ = prepare(VideoInput(prompt="a gate", size="64x48", frames=12, fps=8))
    video, thumbnail, sheet = items(await finish(engine, run))
    with av.open(BytesIO(video.data)) as film:
        stream = film.streams.video[0]
        assert (stream.width, stream.height, stream.average_rate) == (64, 48, 8)
        assert sum(1 for _ in film.decode(stream)) == 12
    assert (video.frames, video.duration_ms, run.units.video_ms) == (12, 1_500, 1_500)
    assert (thumbnail.role, sheet.role) == ("thumbnail", "spritesheet")
    assert Image.open(BytesIO(thumbnail.data)).size == (64, 48)
    assert Image.open(BytesIO(sheet.data)).size == (192, 144)


async def test_a_talking_head_has_sound_as_long_as_its_picture() -> None:
    engine = await engine_with()
    run, _ = prepare(TalkingHeadInput(image=IMAGE, text="Mind the gap between us.", fps=20))
    video = items(await finish(engine, run))[0]
    with av.open(BytesIO(video.data)) as film:
        assert len(film.streams.audio) == 1
        assert film.streams.audio[0].duration * film.streams.audio[0].time_base >= 1.2
    assert (run.units.characters, run.units.audio_ms, run.units.video_ms) == (24, 1_200, 1_200)


@pytest.mark.parametrize("form", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
async def test_sound_comes_whole_and_in_pieces_in_every_format(form: Any) -> None:
    engine = await engine_with()
    run, events = prepare(MusicInput(prompt="drums", seconds=1, response_format=form), stream=True)
    output = await finish(engine, run)
    assert isinstance(output, MediaOutput)
    pieces = [event.data for event in events if isinstance(event, AudioDelta)]
    assert len(pieces) == 8
    assert b"".join(pieces) == output.data
    assert (run.units.audio_ms, output.duration_ms) == (1_000, 1_000)
    if form != "pcm":
        with av.open(BytesIO(output.data)) as file:
            heard = sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0))
        assert abs(heard - 1) < 0.1


async def test_it_writes_down_a_word_for_each_quarter_of_a_second() -> None:
    engine = await engine_with()
    given = TranscriptionInput(file=SOUND, timestamp_granularities=["word"], language="de")
    run, events = prepare(given, stream=True)
    output = await finish(engine, run)
    assert isinstance(output, TranscriptOutput)
    assert output.text == "the gate opens at dawn and every fare is"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == output.text
    assert (output.language, output.duration_ms, run.units.audio_ms) == ("de", 2_300, 2_300)
    assert [(one.start_ms, one.end_ms) for one in output.segments] == [(0, 2_000), (2_000, 2_250)]
    assert len(output.words) == 9


async def test_it_ranks_by_the_words_that_a_document_shares_with_the_query() -> None:
    engine = await engine_with()
    run, _ = prepare(RerankInput(query="the gate", documents=["a wall", "the gate opens", "the sea"], top_n=2))
    assert await finish(engine, run) == RankingOutput([(1, 1.0), (2, 0.5)])
    assert run.units.input_tokens == 9


async def test_a_cancelled_image_is_counted_by_the_steps_that_were_run() -> None:
    engine = await engine_with(steps=30, interval_ms=20)
    run, events = prepare(ImageInput(prompt="a gate", size="64x64"))
    task = asyncio.ensure_future(finish(engine, run))
    while not events:
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 1 <= run.units.steps < 30
    assert (run.units.images, run.units.pixels) == (0, 0)
    assert engine.capacity() == 512


async def test_a_prompt_asks_for_a_fault_of_media_too() -> None:
    engine = await engine_with()
    run, _ = prepare(ImageInput(prompt="a gate fake:fail", size="64x64"))
    with pytest.raises(EngineError):
        await finish(engine, run)
    assert engine.capacity() == 512


async def test_a_model_of_words_alone_needs_no_packages_of_media() -> None:
    engine = FakeEngine(Path())
    states: dict[str, ModelState] = {}
    await engine.load([ServedModel(name="m", tasks=["chat"])], states.__setitem__)
    assert states["m"].state == "ready"
    assert not engine._makers
