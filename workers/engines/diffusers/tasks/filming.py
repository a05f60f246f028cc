"""What `text-to-video` and `image-to-video` share."""

from fractions import Fraction

from gateway.contract.inputs.video import Filming, fps_of, frames_of
from workers.engines.diffusers.drawing import Drawing, Role, Settings
from workers.engines.diffusers.pictures import Picture
from workers.engines.diffusers.tasks.asked import seeds_of, video_steps


def film(
    given: Filming, role: Role, prompt: str, size: tuple[int, int], *, picture: Picture | None = None, follows: bool
) -> Drawing:
    """Draw a video of the frames and the speed that are asked for."""
    return Drawing(
        settings=Settings(
            role=role,
            size=size,
            follows=follows,
            steps=video_steps(given),
            guidance=given.guidance,
            negative=bool(given.negative_prompt),
            frames=frames_of(given),
            fps=fps_of(given),
        ),
        prompt=prompt,
        negative_prompt=given.negative_prompt or "",
        seeds=seeds_of(given.seed),
        pictures=() if picture is None else (picture,),
        rate=Fraction(fps_of(given)),
    )
