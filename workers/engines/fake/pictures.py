"""Pictures of the fake engine: a gradient whose colours are the seed's, over the picture it is made from."""

import asyncio
from hashlib import blake2b
from io import BytesIO

from PIL import Image, UnidentifiedImageError

from gateway.contract.events import GalleryOutput, ImageDelta, MediaOutput
from gateway.contract.inputs import ImageBlendInput, ImageEditInput, ImageInput, ImageUpscaleInput, Media, size_of
from gateway.contract.inputs.fields import MediaSource
from gateway.contract.inputs.image import DEFAULT_SCALE, AnyImageInput, source_image
from workers.engine import RefusedInput, Run
from workers.engines.fake.options import FakeOptions
from workers.engines.fake.steps import preview_steps, stepped

MOST_PIXELS = 16_000_000
PREVIEW_SIDE = 64


async def draw(run: Run, options: FakeOptions) -> GalleryOutput:
    """Draw the images of any image task."""
    given: AnyImageInput = run.input  # type: ignore[assignment]
    count, size = given.n or 1, picture_size(given)
    if size[0] * size[1] > MOST_PIXELS:
        raise RefusedInput(f"The fake engine draws at most {MOST_PIXELS} pixels: ask for a smaller size.")
    sources = [await opened(run, source) for source in _sources(given)]
    seed = seed_of(given.prompt or "") if given.seed is None else given.seed
    steps = given.steps or options.steps
    previews = preview_steps(steps, given.partial_images or 0) if run.heard else {}
    with run.phases.timed("forward"):
        run.began()
        async for step in stepped(run, steps, options.interval_ms / 1000):
            run.units.steps += count
            if step in previews:
                for index in range(count):
                    run.emit(ImageDelta(_preview(seed + index, size), "image/jpeg", index, previews[step]))
    with run.phases.timed("postprocess"):
        items = [await asyncio.to_thread(_written, given, painted(seed + at, size, sources), seed + at)
                 for at in range(count)]  # fmt: skip
    run.units.images += count
    run.units.pixels += count * size[0] * size[1]
    return GalleryOutput(items)


def picture_size(given: AnyImageInput) -> tuple[int, int]:
    """Give width and height: as asked, else those of the picture it is made from, as the ceiling has them."""
    source = source_image(given)
    if not isinstance(source, Media):
        return size_of(given.size)
    if isinstance(given, ImageUpscaleInput):
        scale = given.scale or DEFAULT_SCALE
        return source.width * scale, source.height * scale
    return (source.width, source.height) if given.size in (None, "auto") else size_of(given.size)


def _sources(given: AnyImageInput) -> list[MediaSource]:
    if isinstance(given, ImageInput):
        return []
    if isinstance(given, ImageBlendInput):
        return given.images
    mask = given.mask if isinstance(given, ImageEditInput) else None
    return [given.image] if mask is None else [given.image, mask]


async def opened(run: Run, source: MediaSource) -> Image.Image:
    """Read and decode a picture of the caller. Raises RefusedInput for what is none."""
    data = await run.read(source)
    with run.phases.timed("preprocess"):
        try:
            return Image.open(BytesIO(data)).convert("RGB")
        except (UnidentifiedImageError, OSError):
            raise RefusedInput("This is not a picture.") from None


def seed_of(text: str) -> int:
    """Give the seed of what asks for none: the text's."""
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())


def painted(seed: int, size: tuple[int, int], sources: list[Image.Image]) -> Image.Image:
    """Paint one picture: the sources, one over the other, under the seed's gradient."""
    ramp = Image.linear_gradient("L").resize(size)
    colours = [ramp.point([(value * (channel + 1) + (seed >> 8 * channel)) % 256 for value in range(256)])
               for channel in range(3)]  # fmt: skip
    picture = Image.merge("RGB", colours)
    for source in sources:
        picture = Image.blend(picture, source.resize(size), 0.5)
    return picture


def _preview(seed: int, size: tuple[int, int]) -> bytes:
    small = painted(seed, (min(size[0], PREVIEW_SIDE), min(size[1], PREVIEW_SIDE)), [])
    return _encoded(small, "jpeg", 50)


def _written(given: AnyImageInput, picture: Image.Image, seed: int) -> MediaOutput:
    form = given.output_format or "png"
    if given.background == "transparent" and form != "jpeg":
        picture.putalpha(128)
    compression = 100 if given.output_compression is None else given.output_compression
    data = _encoded(picture, form, compression)
    return MediaOutput(f"image/{form}", len(data), data, width=picture.width, height=picture.height, seed=seed)


def _encoded(picture: Image.Image, form: str, quality: int) -> bytes:
    file = BytesIO()
    picture.save(file, form, quality=max(1, quality))
    return file.getvalue()


def jpeg(picture: Image.Image) -> bytes:
    """Encode a picture that stands for a video."""
    return _encoded(picture, "jpeg", 80)
