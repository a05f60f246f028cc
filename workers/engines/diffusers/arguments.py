"""From what a caller asked for to the arguments of a pipeline, by their names in its signature."""

from collections.abc import Mapping, Sequence
from typing import Any

from workers.engine import RefusedInput
from workers.engines.diffusers.drawing import Settings
from workers.engines.diffusers.roles import frames_step, multiple_of, parameters_of

NAMES: dict[str, tuple[str, ...]] = {
    "guidance": ("guidance_scale", "true_cfg_scale", "max_guidance_scale"),
    "image_guidance": ("image_guidance_scale",),
    "strength": ("strength",),
}
"""What a caller may ask for, and how pipelines call it."""


def size_for(pipeline: Any, settings: Settings) -> tuple[int, int]:
    """Give the size to draw in: as asked, which must fit; or that of a picture, rounded down so that it fits.

    Raises RefusedInput that names the field.
    """
    width, height = settings.size
    step = multiple_of(pipeline)
    fitting = max(step, width // step * step), max(step, height // step * step)
    if settings.follows or fitting == (width, height):
        return fitting
    raise RefusedInput(
        f"size must have a width and a height that are multiples of {step} for this model: {fitting[0]}x{fitting[1]}, "
        "for example."
    )


def frames_for(pipeline: Any, settings: Settings) -> int:
    """Give how many frames to draw: what the pipeline can draw and is not less than what was asked for."""
    step = frames_step(pipeline)
    return -(-(settings.frames - 1) // step) * step + 1


def chosen_arguments(pipeline: Any, settings: Settings) -> dict[str, Any]:
    """Give the arguments for what the caller chose. Raises RefusedInput for what the pipeline knows nothing of."""
    takes = parameters_of(pipeline)
    chosen: dict[str, Any] = {"num_inference_steps": settings.steps}
    for field, names in NAMES.items():
        value = getattr(settings, field)
        if value is None:
            continue
        name = next((name for name in names if name in takes and takes[name].default is not None), None)
        if name is None:
            raise RefusedInput(f"{field} means nothing to this model. Leave it out.")
        chosen[name] = value
    if settings.negative and "negative_prompt" not in takes:
        raise RefusedInput("negative_prompt means nothing to this model. Leave it out.")
    if "strength" in takes:
        chosen["strength"] = _strength(settings, takes["strength"].default)
    return chosen


def _strength(settings: Settings, pipelines_own: float) -> float:
    """Give the strength; it must leave one step to run."""
    strength = settings.strength if settings.strength is not None else settings.usual_strength or pipelines_own
    if strength * settings.steps < 1:
        least = 1 / settings.steps
        if settings.strength is None:
            return least
        raise RefusedInput(f"strength must be at least {least:.2g} with {settings.steps} steps, or nothing is drawn.")
    return strength


def only_taken(pipeline: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what a pipeline does not take."""
    takes = parameters_of(pipeline)
    return {name: value for name, value in arguments.items() if name in takes}


def texts(prompts: Sequence[str], negatives: Sequence[str], *, negative: bool) -> dict[str, Any]:
    """Give the prompts; negative ones where any is given, since an empty one is not the same as none."""
    return {"prompt": list(prompts)} | ({"negative_prompt": list(negatives)} if negative else {})
