"""`image-to-video`: the picture is the first frame."""

from gateway.contract.inputs import ImageToVideoInput
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.pictures import read_picture
from workers.engines.diffusers.tasks.asked import size_after
from workers.engines.diffusers.tasks.filming import film


def draw(given: ImageToVideoInput, files: dict[str, list[bytes]]) -> Drawing:
    """Let a picture move. Raises RefusedInput that names the field."""
    picture = read_picture(files["image"][0], "image")
    size, follows = size_after(given, picture)
    return film(given, "image2video", given.prompt or "", size, picture=picture, follows=follows)
