"""`video-upscale`: frame by frame, each from the same noise, so that what rests stays at rest."""

from gateway.contract.inputs import VideoUpscaleInput
from workers.engines.diffusers.drawing import Drawing, Settings
from workers.engines.diffusers.films import read_film
from workers.engines.diffusers.tasks.asked import seeds_of, video_steps


def draw(given: VideoUpscaleInput, files: dict[str, list[bytes]]) -> Drawing:
    """Draw a video larger; its length and its sound stay. Raises RefusedInput that names the field."""
    film = read_film(files["video"][0], "video")
    return Drawing(
        settings=Settings(
            role="upscale",
            size=film.size,
            follows=True,
            steps=video_steps(given),
            guidance=given.guidance,
            strength=given.strength,
            scale=given.scale,
        ),
        prompt=given.prompt or "",
        seeds=seeds_of(given.seed) * len(film.frames),
        pictures=tuple(film.frames),
        in_parts=True,
        rate=film.rate,
        sound=film.source,
    )
