"""`image-relight`: light is laid over the picture, and the picture drawn again in it."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from PIL import Image

from gateway.contract.inputs import ImageRelightInput
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.pictures import Picture, read_picture
from workers.engines.diffusers.tasks.asked import words_of
from workers.engines.diffusers.tasks.from_picture import redraw

USUAL_STRENGTH = 0.5
DARK, BRIGHT = 0.45, 1.6
"""What the light multiplies a pixel by, at its far and at its near end."""

Plane = npt.NDArray[np.float32]

LIGHTS: dict[str, Callable[[Plane, Plane], Plane]] = {
    "left": lambda x, _: 1 - x,
    "right": lambda x, _: x,
    "top": lambda _, y: 1 - y,
    "bottom": lambda _, y: y,
    "front": lambda x, y: 1 - _from_middle(x, y),
    "back": lambda x, y: _from_middle(x, y),
}
"""How bright it is, from 0 to 1, at each place: x from left to right, y from top to bottom, both from 0 to 1."""


def draw(given: ImageRelightInput, files: dict[str, list[bytes]]) -> Drawing:
    """Draw a picture in another light. Raises RefusedInput that names the field."""
    picture = read_picture(files["image"][0], "image")
    if given.direction is None:
        return redraw(given, picture, usual_strength=USUAL_STRENGTH)
    words = ", ".join(part for part in (words_of(given), f"light from the {given.direction}") if part)
    return redraw(given, lit(picture, given.direction), prompt=words, usual_strength=USUAL_STRENGTH)


def lit(picture: Picture, direction: str) -> Picture:
    """Lay light over a picture."""
    y, x = np.mgrid[0 : picture.height, 0 : picture.width].astype(np.float32)
    share = LIGHTS[direction](x / max(1, picture.width - 1), y / max(1, picture.height - 1))
    light = DARK + (BRIGHT - DARK) * share[:, :, np.newaxis]
    return Image.fromarray((np.asarray(picture, np.float32) * light).round().clip(0, 255).astype(np.uint8))


def _from_middle(x: Plane, y: Plane) -> Plane:
    far: Plane = np.minimum(1, np.hypot(2 * x - 1, 2 * y - 1) / np.sqrt(2)).astype(np.float32)
    return far
