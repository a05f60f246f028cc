"""`image-upscale`."""

import msgspec

from gateway.contract.inputs import ImageUpscaleInput
from workers.engine import RefusedInput
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.pictures import read_picture
from workers.engines.diffusers.tasks.asked import encoding_of, image_settings, seeds_of, words_of


def draw(given: ImageUpscaleInput, files: dict[str, list[bytes]]) -> Drawing:
    """Draw a picture larger. Raises RefusedInput that names the field."""
    if given.size not in (None, "auto"):
        raise RefusedInput("size follows from image and scale. Leave it out.")
    picture = read_picture(files["image"][0], "image")
    settings = image_settings(given, "upscale", picture.size, follows=True)
    return Drawing(
        settings=msgspec.structs.replace(settings, scale=given.scale),
        prompt=words_of(given),
        negative_prompt=given.negative_prompt or "",
        seeds=seeds_of(given.seed, given.n or 1),
        pictures=(picture,),
        encoding=encoding_of(given),
    )
