"""Image files: read what a caller sends, write what was drawn. Pillow only, in the side threads."""

import io
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from gateway.contract.inputs.image import ImageFormat
from workers.engine import EngineError, RefusedInput

Picture = Image.Image
Pixels = npt.NDArray[np.float32]
"""Height, width and three colours, from 0 to 1."""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
MEDIA_TYPES: dict[ImageFormat, str] = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}
USUAL_QUALITY = 90
MOST_PIXELS = 64 * 1024 * 1024
THUMBNAIL_SIDE = 512


class Encoding(msgspec.Struct, frozen=True, kw_only=True):
    """How an image is written. `quality` is from 0 to 100, of jpeg and webp."""

    kind: ImageFormat = "png"
    quality: int = USUAL_QUALITY

    @property
    def media_type(self) -> str:
        """The media type of such a file."""
        return MEDIA_TYPES[self.kind]


def read_picture(data: bytes, field: str, mode: Literal["RGB", "mask"] = "RGB") -> Picture:
    """Decode an image file, upright. What is transparent is white in a picture and chosen in a mask.

    Raises RefusedInput that names the field.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as file:
            if file.width * file.height > MOST_PIXELS:
                raise RefusedInput(f"{field} has more than {MOST_PIXELS} pixels. Send a smaller one.")
            upright = ImageOps.exif_transpose(file)
            return _as_mask(upright) if mode == "mask" else _on_white(upright)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError):
        raise RefusedInput(f"{field} is not an image that can be read. Send a PNG, JPEG or WebP file.") from None


def _on_white(picture: Picture) -> Picture:
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    white = Image.new("RGBA", clear.size, "white")
    return Image.alpha_composite(white, clear).convert("RGB")


def _as_mask(picture: Picture) -> Picture:
    """White where the picture may change: where the mask is transparent, or, if it is nowhere, where it is white."""
    if picture.has_transparency_data:
        alpha = picture.convert("RGBA").getchannel("A")
        if alpha.getextrema() != (255, 255):
            return ImageOps.invert(alpha)
    return picture.convert("L")


def fitted(picture: Picture, size: tuple[int, int]) -> Picture:
    """Bring a picture to a size: scaled, and what does not fit the proportions cut off on both sides."""
    return picture if picture.size == size else ImageOps.fit(picture, size, Image.Resampling.LANCZOS)


def to_picture(pixels: Pixels) -> Picture:
    """Make a picture of what was drawn. Raises EngineError where it holds no numbers."""
    if not np.isfinite(pixels).all():
        raise EngineError("The model's numbers overflowed while it drew: it needs another precision.")
    return Image.fromarray((pixels.clip(0, 1) * 255).round().astype(np.uint8))


def write_picture(picture: Picture, encoding: Encoding) -> bytes:
    """Encode an image file."""
    buffer = io.BytesIO()
    how: dict[ImageFormat, dict[str, Any]] = {
        "png": {"compress_level": 1},  # a third of the time of 6, for a tenth more bytes
        "jpeg": {"quality": encoding.quality},
        "webp": {"quality": encoding.quality, "method": 2},
    }
    picture.save(buffer, encoding.kind, **how[encoding.kind])
    return buffer.getvalue()


def thumbnail(picture: Picture) -> tuple[bytes, tuple[int, int]]:
    """Write the small picture that stands for a video, as JPEG, and give its size."""
    small = picture.copy()
    small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    return write_picture(small, Encoding(kind="jpeg")), small.size
