"""`image-edit`: by instruction, or inside of a mask."""

import msgspec

from gateway.contract.inputs import ImageEditInput
from workers.engine import RefusedInput
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.pictures import read_picture
from workers.engines.diffusers.tasks.from_picture import redraw

USUAL_STRENGTH = 0.8
FAITHFUL_STRENGTH = 0.4


def draw(given: ImageEditInput, files: dict[str, list[bytes]]) -> Drawing:
    """Change a picture. Raises RefusedInput that names the field."""
    picture = read_picture(files["image"][0], "image")
    mask = read_picture(files["mask"][0], "mask", "mask") if files.get("mask") else None
    if mask is not None and mask.size != picture.size:
        raise RefusedInput(f"mask must have the size of image, {picture.width}x{picture.height}.")
    usual = FAITHFUL_STRENGTH if given.input_fidelity == "high" else USUAL_STRENGTH
    drawing = redraw(given, picture, usual_strength=usual, mask=mask)
    settings = msgspec.structs.replace(drawing.settings, image_guidance=given.image_guidance)
    return msgspec.structs.replace(drawing, settings=settings)
