"""`image-blend`: several pictures laid over each other, and drawn again as one."""

import numpy as np
from PIL import Image

from gateway.contract.inputs import ImageBlendInput
from workers.engine import RefusedInput
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.pictures import fitted, read_picture
from workers.engines.diffusers.tasks.asked import size_after
from workers.engines.diffusers.tasks.from_picture import redraw

USUAL_STRENGTH = 0.5


def draw(given: ImageBlendInput, files: dict[str, list[bytes]]) -> Drawing:
    """Blend pictures by their weights. Raises RefusedInput that names the field."""
    pictures = [read_picture(data, f"images[{at}]") for at, data in enumerate(files["images"])]
    weights = given.weights or [1.0] * len(pictures)
    if len(weights) != len(pictures):
        raise RefusedInput(f"weights must have one number for each of the {len(pictures)} images.")
    size, _ = size_after(given, pictures[0])
    mixed = np.zeros((size[1], size[0], 3), np.float32)
    for picture, weight in zip(pictures, weights, strict=True):
        mixed += np.asarray(fitted(picture, size), np.float32) * np.float32(weight / sum(weights))
    blended = Image.fromarray(mixed.round().clip(0, 255).astype(np.uint8))
    return redraw(given, blended, usual_strength=USUAL_STRENGTH)
