"""What the inputs of all tasks say alike: seeds, steps, encoding, words."""

import random

from gateway.contract.inputs.image import DEFAULT_STEPS, AnyImageInput, Imaging
from gateway.contract.inputs.video import Filming, VideoUpscaleInput
from workers.engine import RefusedInput
from workers.engines.diffusers.drawing import Role, Settings
from workers.engines.diffusers.pictures import USUAL_QUALITY, Encoding, Picture

QUALITIES = {"low": 0.5, "medium": 0.75, "auto": 1.0, "standard": 1.0, "high": 1.0, "hd": 1.0}
"""The share of the steps that is run for each word of OpenAI's `quality`."""
DRAWN_SEEDS = 2**31


def seeds_of(seed: int | None, count: int = 1) -> tuple[int, ...]:
    """Give the seed of each image: from the caller's on, or from one that is drawn now; 64 bits, and round again."""
    first = random.randrange(DRAWN_SEEDS) if seed is None else seed
    return tuple((first + at + 2**63) % 2**64 - 2**63 for at in range(count))


def steps_of(given: Imaging) -> int:
    """Give the denoising steps. Raises RefusedInput for a quality that nobody knows."""
    share = QUALITIES.get(given.quality or "auto")
    if share is None:
        raise RefusedInput(f"quality must be one of: {', '.join(QUALITIES)}.")
    return max(1, round((given.steps or DEFAULT_STEPS) * share))


def encoding_of(given: Imaging) -> Encoding:
    """Say how images are written. Raises RefusedInput where that cannot be."""
    if given.background == "transparent":
        raise RefusedInput("background cannot be transparent: this model draws opaque images.")
    quality = USUAL_QUALITY if given.output_compression is None else given.output_compression
    return Encoding(kind=given.output_format or "png", quality=quality)


def words_of(given: AnyImageInput) -> str:
    """Give the prompt, and the style where one is named."""
    return ", ".join(part for part in (given.prompt, f"{given.style} style" if given.style else "") if part)


def image_settings(
    given: AnyImageInput, role: Role, size: tuple[int, int], *, follows: bool = False, usual_strength: float = 0.0
) -> Settings:
    """Gather what an image call is to be like."""
    return Settings(
        role=role,
        size=size,
        follows=follows,
        steps=steps_of(given),
        guidance=given.guidance,
        strength=getattr(given, "strength", None),
        usual_strength=usual_strength or None,
        negative=bool(given.negative_prompt),
    )


def size_after(given: Imaging | Filming, picture: Picture) -> tuple[tuple[int, int], bool]:
    """Give the size that is asked for, else that of the picture; and whether it follows the picture."""
    if given.size is None or given.size == "auto":
        return picture.size, True
    width, _, height = given.size.partition("x")
    return (int(width), int(height)), False


def video_steps(given: Filming | VideoUpscaleInput) -> int:
    """Give the denoising steps of a video."""
    return given.steps or DEFAULT_STEPS
