"""What a pipeline is to draw for one request: the same for every task, made by `tasks/`."""

from fractions import Fraction
from typing import Literal

import msgspec

from workers.engines.diffusers.pictures import Encoding, Picture, Pixels

Role = Literal["text2image", "image2image", "inpaint", "upscale", "text2video", "image2video"]
"""What kind of call serves a task; one folder of weights may serve several."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What must be equal for requests to run together. None leaves a value to the pipeline."""

    role: Role
    size: tuple[int, int]
    follows: bool = False
    """Whether the size is that of a picture, and may be rounded; one that was asked for must fit."""
    steps: int
    guidance: float | None = None
    image_guidance: float | None = None
    strength: float | None = None
    usual_strength: float | None = None
    """The task's own strength, where the caller names none and the pipeline takes one."""
    negative: bool = False
    frames: int = 1
    fps: int = 0
    scale: int | None = None


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """One request: an image, or a video, for each seed.

    `pictures` holds none, one for all seeds, or one for each. A request in `parts` is one video drawn frame by frame:
    its steps count once.
    """

    settings: Settings
    prompt: str
    negative_prompt: str = ""
    seeds: tuple[int, ...]
    pictures: tuple[Picture, ...] = ()
    mask: Picture | None = None
    previews: int = 0
    in_parts: bool = False
    encoding: Encoding = Encoding()
    rate: Fraction = Fraction(0)
    """Frames a second of a video; 0 of images."""
    sound: bytes = b""
    """The file from which a video takes its sound."""

    @property
    def is_film(self) -> bool:
        """Whether a video comes out."""
        return bool(self.rate)

    def picture(self, index: int) -> Picture | None:
        """Give the picture that the image of this index is made from."""
        if not self.pictures:
            return None
        return self.pictures[index] if len(self.pictures) > 1 else self.pictures[0]


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """What came out: images, or the frames of a video, and the size they are to be delivered in."""

    pixels: list[Pixels]
    size: tuple[int, int]
