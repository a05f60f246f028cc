"""`text-to-video`."""

from gateway.contract.inputs import VideoInput, size_of
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.tasks.filming import film


def draw(given: VideoInput, _: dict[str, list[bytes]]) -> Drawing:
    """Draw a video from words alone."""
    return film(given, "text2video", given.prompt, size_of(given.size), follows=False)
