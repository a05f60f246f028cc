"""From what was drawn to files, with what they measure. In a side thread: torch draws the next meanwhile."""

import msgspec
import numpy as np
from PIL import Image

from gateway.contract.events import GalleryOutput, ImageDelta, MediaOutput
from gateway.contract.inputs import Input, Media, VideoUpscaleInput
from gateway.contract.units import Units
from workers.engine import EngineError
from workers.engines.diffusers.drawing import Drawing, Drawn
from workers.engines.diffusers.films import MEDIA_TYPE, write_film
from workers.engines.diffusers.pictures import Encoding, Picture, thumbnail, to_picture, write_picture
from workers.engines.diffusers.sitting import Preview


class Finished(msgspec.Struct, frozen=True):
    """An output, and its units but for the steps."""

    output: MediaOutput | GalleryOutput
    units: Units


def finish(given: Input, drawing: Drawing, drawn: Drawn) -> Finished:
    """Encode what was drawn. Raises EngineError where it holds no picture."""
    if not drawn.pixels:
        raise EngineError("The model drew nothing.")
    pictures = [_sized(to_picture(one), drawn.size) for one in drawn.pixels]
    return _film(given, drawing, pictures) if drawing.is_film else _images(drawing, pictures)


def _sized(picture: Picture, size: tuple[int, int]) -> Picture:
    return picture if picture.size == size else picture.resize(size, Image.Resampling.LANCZOS)


def _images(drawing: Drawing, pictures: list[Picture]) -> Finished:
    items = []
    for seed, picture in zip(drawing.seeds, pictures, strict=True):
        data = write_picture(picture, drawing.encoding)
        items.append(
            MediaOutput(
                drawing.encoding.media_type, len(data), data, width=picture.width, height=picture.height, seed=seed
            )
        )
    pixels = sum(picture.width * picture.height for picture in pictures)
    return Finished(items[0] if len(items) == 1 else GalleryOutput(items), Units(images=len(items), pixels=pixels))


def _film(given: Input, drawing: Drawing, pictures: list[Picture]) -> Finished:
    """Write a video, and the small picture that stands for it."""
    size = pictures[0].size
    data = write_film((np.asarray(picture) for picture in pictures), size, drawing.rate, drawing.sound)
    length_ms = -(-len(pictures) * 1000 * drawing.rate.denominator // drawing.rate.numerator)
    if isinstance(given, VideoUpscaleInput) and isinstance(given.video, Media) and given.video.duration_ms:
        length_ms = min(length_ms, given.video.duration_ms)  # as long as it was, and never more than was quoted
    film = MediaOutput(
        MEDIA_TYPE,
        len(data),
        data,
        width=size[0],
        height=size[1],
        duration_ms=length_ms,
        frames=len(pictures),
        seed=drawing.seeds[0],
    )
    small, small_size = thumbnail(pictures[0])
    still = MediaOutput("image/jpeg", len(small), small, width=small_size[0], height=small_size[1], role="thumbnail")
    pixels = len(pictures) * size[0] * size[1]
    return Finished(GalleryOutput([film, still]), Units(pixels=pixels, video_ms=length_ms))


def show(preview: Preview, encoding: Encoding) -> ImageDelta:
    """Encode a preview."""
    data = write_picture(to_picture(preview.pixels), encoding)
    return ImageDelta(data, encoding.media_type, preview.item.index, preview.number)
