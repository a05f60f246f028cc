"""Videos of the fake engine: a gradient that wanders, in a real MP4 with a thumbnail and a sheet of stills."""

import asyncio
from fractions import Fraction
from io import BytesIO

import av
import msgspec
from PIL import Image, ImageChops

from gateway.contract.events import GalleryOutput, MediaOutput
from gateway.contract.inputs import ImageToVideoInput, Media, TalkingHeadInput, VideoInput, VideoUpscaleInput, size_of
from gateway.contract.inputs.image import DEFAULT_SCALE
from gateway.contract.inputs.video import fps_of, frames_of
from workers.engine import RefusedInput, Run
from workers.engines.fake.options import FakeOptions
from workers.engines.fake.pictures import jpeg, opened, painted, seed_of
from workers.engines.fake.sounds import MS_PER_CHARACTER, RATE, frame_of, tone
from workers.engines.fake.steps import stepped

MOST_PIXELS = 500_000_000
SHEET_STILLS = 9
SHEET_COLUMNS = 3
STILL_SIDE = 96

AnyFilmInput = VideoInput | ImageToVideoInput | VideoUpscaleInput | TalkingHeadInput


class Film(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be filmed. Sides are even, as H.264 wants them."""

    width: int
    height: int
    frames: int
    fps: int
    seed: int
    sound: bytes = b""
    """Samples for a sound track, 16 bits, mono."""


async def shoot(run: Run, options: FakeOptions) -> GalleryOutput:
    """Make the video of any video task."""
    given: AnyFilmInput = run.input  # type: ignore[assignment]
    film = _plan(given)
    if film.width * film.height * film.frames > MOST_PIXELS:
        raise RefusedInput(f"The fake engine films at most {MOST_PIXELS} pixels: ask for fewer or smaller frames.")
    sources = []
    if isinstance(given, ImageToVideoInput | TalkingHeadInput):
        sources = [await opened(run, given.image)]
    elif isinstance(given, VideoUpscaleInput):
        await run.read(given.video)
    with run.phases.timed("forward"):
        run.began()
        async for _ in stepped(run, given.steps or options.steps, options.interval_ms / 1000):
            run.units.steps += 1
    with run.phases.timed("postprocess"):
        first = painted(film.seed, (film.width, film.height), sources)
        output = await asyncio.to_thread(_developed, film, first)
    run.units.pixels += film.frames * film.width * film.height
    run.units.video_ms += output.items[0].duration_ms
    if isinstance(given, TalkingHeadInput):
        run.units.characters += len(given.text or "")
        run.units.audio_ms += len(film.sound) // 2 * 1000 // RATE
    return output


def _plan(given: AnyFilmInput) -> Film:
    seed = seed_of(given.prompt or "") if given.seed is None else given.seed
    if isinstance(given, VideoUpscaleInput):
        source, scale = given.video, given.scale or DEFAULT_SCALE
        assert isinstance(source, Media)
        fps = max(1, source.frames * 1000 // max(1, source.duration_ms))
        return Film(
            width=source.width * scale & ~1, height=source.height * scale & ~1, frames=source.frames, fps=fps, seed=seed
        )
    width, height = size_of(given.size)
    image = None if isinstance(given, VideoInput) else given.image
    if given.size in (None, "auto") and isinstance(image, Media):
        width, height = image.width, image.height
    width, height = width & ~1, height & ~1
    if not isinstance(given, TalkingHeadInput):
        return Film(width=width, height=height, frames=frames_of(given), fps=fps_of(given), seed=seed)
    audio = given.audio
    length_ms = audio.duration_ms if isinstance(audio, Media) else MS_PER_CHARACTER * len(given.text or "")
    frames = max(1, length_ms * fps_of(given) // 1000)
    return Film(width=width, height=height, frames=frames, fps=fps_of(given), seed=seed, sound=tone(seed, length_ms))


def _developed(film: Film, first: Image.Image) -> GalleryOutput:
    duration_ms = film.frames * 1000 // film.fps
    data = _encoded(film, first)
    video = MediaOutput("video/mp4", len(data), data, width=film.width, height=film.height, duration_ms=duration_ms,
                        frames=film.frames, seed=film.seed)  # fmt: skip
    still = first.copy()
    still.thumbnail((STILL_SIDE, STILL_SIDE))
    sheet = Image.new("RGB", (still.width * SHEET_COLUMNS, still.height * -(-SHEET_STILLS // SHEET_COLUMNS)))
    for at in range(SHEET_STILLS):
        shown = ImageChops.offset(still, at * still.width // SHEET_STILLS, 0)
        sheet.paste(shown, (at % SHEET_COLUMNS * still.width, at // SHEET_COLUMNS * still.height))
    return GalleryOutput([video, _still(still, "thumbnail"), _still(sheet, "spritesheet")])


def _still(picture: Image.Image, role: str) -> MediaOutput:
    data = jpeg(picture)
    return MediaOutput("image/jpeg", len(data), data, width=picture.width, height=picture.height, role=role)


def _encoded(film: Film, first: Image.Image) -> bytes:
    file = BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", film.fps, options={"preset": "ultrafast", "threads": "1"})
        stream.width, stream.height, stream.pix_fmt = film.width, film.height, "yuv420p"
        sound = container.add_stream("aac", RATE, layout="mono") if film.sound else None
        for at in range(film.frames):
            frame = av.VideoFrame.from_image(ImageChops.offset(first, at * 2, 0))
            frame.pts, frame.time_base = at, Fraction(1, film.fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if sound is not None:
            container.mux(sound.encode(frame_of(film.sound)))
            container.mux(sound.encode(None))
    return file.getvalue()
