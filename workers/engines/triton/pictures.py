"""From the tensor of an image to a file."""

import io
from collections.abc import Callable

import msgspec
import numpy as np
from PIL import Image
from tritonclient.grpc import InferResult

from gateway.contract.inputs import ImageInput
from workers.engine import EngineError
from workers.engines.triton.options import TritonOptions
from workers.engines.triton.tensors import Array, floats, needed

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""What an image of so many channels is."""
QUALITY = 90
MAX_PIXELS = 64 * 1024 * 1024


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """An image file."""

    data: bytes
    media_type: str
    width: int
    height: int


def picture_of(result: InferResult, name: str, options: TritonOptions, given: ImageInput) -> Picture:
    """Read an image, of pixels or of a file's bytes, and write it as was asked; blocks. Raises EngineError."""
    array = needed(floats(result, name), name)
    image = _opened(array) if array.dtype == np.object_ else _of_pixels(array, options)
    return _written(image, given)


def _opened(array: Array) -> Image.Image:
    """Open a file that the model has encoded itself."""
    try:
        image = Image.open(io.BytesIO(array.reshape(-1)[0]), formats=("PNG", "JPEG", "WEBP"))
        if image.width * image.height > MAX_PIXELS:
            raise EngineError("The model gave an image that is too large.")
        image.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise EngineError("The model gave no image.") from None
    return image


def _of_pixels(array: Array, options: TritonOptions) -> Image.Image:
    """Make an image of height, width and channels, or of channels first, with or without a batch of one in front."""
    while array.ndim > 3 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 3 and options.layout == "chw":
        array = np.moveaxis(array, 0, -1)
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.ndim != 3 or array.shape[-1] not in MODES:
        raise EngineError("The model gave a tensor that is no image of the layout in the catalog.")
    if array.dtype.kind == "f":
        low, high = options.pixel_range
        share = (np.nan_to_num(array.astype(np.float32)) - low) / (high - low)
        array = np.rint(np.clip(share, 0, 1) * 255)
    pixels = np.ascontiguousarray(array.astype(np.uint8))
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[-1] == 1 else pixels)


def _written(image: Image.Image, given: ImageInput) -> Picture:
    kind = given.output_format or "png"
    if kind == "jpeg" and image.mode != "L":
        image = image.convert("RGB")
    out = io.BytesIO()
    _WRITERS[kind](image, out, QUALITY if given.output_compression is None else given.output_compression)
    return Picture(data=out.getvalue(), media_type=f"image/{kind}", width=image.width, height=image.height)


_WRITERS: dict[str, Callable[[Image.Image, io.BytesIO, int], None]] = {
    "png": lambda image, out, _: image.save(out, "PNG"),
    "jpeg": lambda image, out, quality: image.save(out, "JPEG", quality=quality),
    "webp": lambda image, out, quality: image.save(out, "WEBP", quality=quality),
}
