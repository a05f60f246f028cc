"""`image-restyle`."""

from gateway.contract.inputs import ImageRestyleInput
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.pictures import read_picture
from workers.engines.diffusers.tasks.from_picture import redraw

USUAL_STRENGTH = 0.6


def draw(given: ImageRestyleInput, files: dict[str, list[bytes]]) -> Drawing:
    """Draw a picture in another style. Raises RefusedInput that names the field."""
    return redraw(given, read_picture(files["image"][0], "image"), usual_strength=USUAL_STRENGTH)
