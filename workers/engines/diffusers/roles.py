"""Which pipelines one folder of weights offers, made from the same components: no weight is in memory twice.

Imports diffusers: used in torch's thread only.
"""

import inspect
from collections.abc import Callable
from typing import Any

import diffusers

from workers.engines.diffusers.drawing import Role
from workers.engines.diffusers.options import BadModel

OWN_SCALE = {"StableDiffusionUpscalePipeline": 4, "StableDiffusionLatentUpscalePipeline": 2}
"""The upscalers, and what they multiply width and height by."""

VIDEO_TWINS = {"LTXPipeline": "LTXImageToVideoPipeline", "LTXImageToVideoPipeline": "LTXPipeline"}
"""Pipelines whose components serve the other task of video, too."""


def parameters_of(pipeline: Any) -> Any:
    """Give the parameters that a pipeline's call takes, by name."""
    return inspect.signature(type(pipeline).__call__).parameters


def follows_instructions(pipeline: Any) -> bool:
    """Say whether a pipeline changes a picture as it is told to, rather than drawing over its noise."""
    takes = parameters_of(pipeline)
    other = {"strength", "num_frames", "mask_image", "control_image"} & set(takes)
    return "image" in takes and not other and type(pipeline).__name__ not in OWN_SCALE


def _text2image(base: Any) -> Any:
    takes = parameters_of(base)
    if "prompt" in takes and "image" not in takes:
        return base
    return diffusers.AutoPipelineForText2Image.from_pipe(base)


def _image2image(base: Any) -> Any:
    return base if follows_instructions(base) else diffusers.AutoPipelineForImage2Image.from_pipe(base)


def _inpaint(base: Any) -> Any:
    return base if follows_instructions(base) else diffusers.AutoPipelineForInpainting.from_pipe(base)


def _upscale(base: Any) -> Any:
    return base if type(base).__name__ in OWN_SCALE else _image2image(base)


def _video(base: Any, *, from_image: bool) -> Any:
    takes = parameters_of(base)
    if "num_frames" in takes and ("image" in takes) is from_image:
        return base
    twin = VIDEO_TWINS.get(type(base).__name__)
    if twin is None:
        raise ValueError
    return getattr(diffusers, twin)(**base.components)


_ROLES: dict[Role, Callable[[Any], Any]] = {
    "text2image": _text2image,
    "image2image": _image2image,
    "inpaint": _inpaint,
    "upscale": _upscale,
    "text2video": lambda base: _video(base, from_image=False),
    "image2video": lambda base: _video(base, from_image=True),
}


def pipeline_for(base: Any, role: Role) -> Any:
    """Give the pipeline that serves a role with the components of another. Raises BadModel where there is none."""
    if role in ("text2image", "image2image", "inpaint") and "num_frames" in parameters_of(base):
        raise BadModel(f"{type(base).__name__} makes video and no {role}")
    try:
        made = _ROLES[role](base)
    except ValueError:
        raise BadModel(f"{type(base).__name__} has no {role} in diffusers") from None
    made.set_progress_bar_config(disable=True)
    return made


def multiple_of(pipeline: Any) -> int:
    """Give what width and height must be a multiple of: what the autoencoder and the patches make of a pixel."""
    patch = getattr(getattr(getattr(pipeline, "transformer", None), "config", None), "patch_size", 1)
    across = patch[-1] if isinstance(patch, list | tuple) else patch or 1
    compression: int | None = getattr(pipeline, "vae_spatial_compression_ratio", None)
    if compression is not None:
        return compression * across
    scale: int = getattr(pipeline, "vae_scale_factor_spatial", 0) or getattr(pipeline, "vae_scale_factor", 8)
    if across == 1 and hasattr(pipeline, "_pack_latents"):  # Flux and its kin pack 2x2 latents without saying so
        across = 2
    return max(8, scale * across)


def frames_step(pipeline: Any) -> int:
    """Give how many frames one latent frame stands for: a video has a multiple of it, and one."""
    for name in ("vae_scale_factor_temporal", "vae_temporal_compression_ratio"):
        if (ratio := getattr(pipeline, name, None)) is not None:
            return int(ratio)
    return 1
