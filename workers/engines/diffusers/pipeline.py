"""A loaded model: draws what several requests want in as few calls as its memory allows.

Imports torch: used in torch's thread only.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from workers.engine import EngineError, EngineLost, RefusedInput
from workers.engines.diffusers.arguments import chosen_arguments, frames_for, only_taken, size_for, texts
from workers.engines.diffusers.drawing import Drawing, Drawn, Role, Settings
from workers.engines.diffusers.loading import free, load_pipeline, weight_bytes
from workers.engines.diffusers.options import Entry
from workers.engines.diffusers.pictures import Picture, Pixels, fitted
from workers.engines.diffusers.roles import OWN_SCALE, follows_instructions, parameters_of, pipeline_for
from workers.engines.diffusers.sitting import Item, Sitting, preview_number

SEVERAL_PICTURES = ("QwenImageEditPlus", "QwenImageLayered", "Flux2")
"""Pipelines that take a list of pictures for several that one prompt speaks of: they draw one image a call."""
USUAL_THREADS = torch.get_num_threads()
USUAL_SCALE = 4


class Pipeline:
    """A model in memory."""

    def __init__(self, entry: Entry, roles: Sequence[Role]) -> None:
        """Load it, and what each role needs. Raises one of `gallery.LOAD_ERRORS`."""
        self._base = load_pipeline(entry)
        self._roles = {role: pipeline_for(self._base, role) for role in roles}
        self._threads = entry.options.threads or USUAL_THREADS
        self.size_bytes = weight_bytes(self._base)

    def draw(self, sitting: Sitting, most_images: int) -> list[Drawn]:
        """Draw what all requests of a sitting want; their settings are equal. Blocks for long.

        Raises RefusedInput, EngineError, EngineLost, Deserted, or MemoryError where less may be drawn at once.
        """
        torch.set_num_threads(self._threads)
        settings = sitting.drawings[0].settings
        pipe = self._pipeline(settings.role)
        call = _Call(pipe, settings, sitting)
        items = sitting.items()
        at_once = 1 if type(pipe).__name__.startswith(SEVERAL_PICTURES) else most_images
        pixels: dict[int, list[Pixels]] = {}
        for start in range(0, len(items), at_once):
            sitting.check()
            chunk = items[start : start + at_once]
            for item, drawn in zip(chunk, _guarded(call, chunk), strict=True):
                pixels.setdefault(item.drawing, []).append(drawn)
        return [call.delivered(drawing, pixels.get(at, [])) for at, drawing in enumerate(sitting.drawings)]

    def _pipeline(self, role: Role) -> Any:
        """Give the pipeline of a role; one that came up late, such as a mask for an edit, is made now."""
        if role not in self._roles:
            try:
                self._roles[role] = pipeline_for(self._base, role)
            except ValueError as error:
                raise RefusedInput(f"This model cannot do that: {error}.") from None
        return self._roles[role]


def _guarded(call: "_Call", chunk: Sequence[Item]) -> list[Pixels]:
    """Run a call, and turn what torch raises into what an engine raises."""
    try:
        return call.run(chunk)
    except (torch.OutOfMemoryError, MemoryError):
        pass
    except torch.AcceleratorError:
        raise EngineLost("The GPU has failed.") from None
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise EngineError("The model could not draw this.") from error
    free()
    raise MemoryError


class _Call:
    """One way of calling a pipeline, for requests with equal settings."""

    def __init__(self, pipe: Any, settings: Settings, sitting: Sitting) -> None:
        self._pipe = pipe
        self._settings = settings
        self._sitting = sitting
        self._scale = self._scale_of()
        self._fed = size_for(pipe, self._fed_settings())
        self._chosen = chosen_arguments(pipe, settings)
        self._own_mask = settings.role == "inpaint" and follows_instructions(pipe)

    def run(self, chunk: Sequence[Item]) -> list[Pixels]:
        """Draw some images: float32, from 0 to 1, of height, width, 3; a video has its frames before."""
        answer = self._pipe(**self._arguments(chunk))
        drawn = answer.frames if hasattr(answer, "frames") else answer.images
        return [np.asarray(one, np.float32) for one in drawn]

    def delivered(self, drawing: Drawing, pixels: list[Pixels]) -> Drawn:
        """Finish what was drawn for one request: cut a video to its length, restore what a mask protects."""
        settings, size = self._settings, self._fed
        if settings.role == "upscale":
            size = settings.size[0] * self._scale, settings.size[1] * self._scale
        elif drawing.is_film and pixels:
            pixels = list(pixels[0][: settings.frames])
        if self._own_mask and drawing.mask is not None:
            pixels = [self._restored(drawing, one) for one in pixels]
        return Drawn(pixels=pixels, size=size)

    def _arguments(self, chunk: Sequence[Item]) -> dict[str, Any]:
        drawings = [self._sitting.drawings[item.drawing] for item in chunk]
        width, height = self._fed
        given: dict[str, Any] = {"width": width, "height": height, "output_type": "np", "callback_steps": 1}
        given |= texts(
            [each.prompt for each in drawings],
            [each.negative_prompt for each in drawings],
            negative=self._settings.negative,
        )
        given["generator"] = [
            torch.Generator().manual_seed(each.seeds[item.index]) for each, item in zip(drawings, chunk, strict=True)
        ]
        if drawings[0].pictures:
            given["image"] = [self._picture(each, item) for each, item in zip(drawings, chunk, strict=True)]
        if drawings[0].mask is not None:
            given["mask_image"] = [fitted(each.mask, self._fed) for each in drawings if each.mask is not None]
        if drawings[0].is_film and not drawings[0].in_parts:
            fps = self._settings.fps
            given |= {"num_frames": frames_for(self._pipe, self._settings), "frame_rate": fps, "fps": fps}
        return only_taken(self._pipe, given | self._chosen | self._callbacks(chunk))

    def _picture(self, drawing: Drawing, item: Item) -> Picture:
        picture = drawing.picture(item.index)
        if picture is None:
            raise EngineError("A picture is missing.")
        return fitted(picture, self._fed)

    def _callbacks(self, chunk: Sequence[Item]) -> dict[str, Any]:
        """Watch each step. The upscalers know only the old way."""
        done = 0

        def step(latents: Any) -> None:
            nonlocal done
            done += 1
            steps = getattr(self._pipe, "num_timesteps", None) or len(self._pipe.scheduler.timesteps)
            self._sitting.stepped(chunk, steps)
            self._show(chunk, latents, done, steps)

        def on_step_end(_: Any, __: int, ___: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            step(tensors["latents"])
            return tensors

        return {"callback_on_step_end": on_step_end, "callback": lambda _, __, latents: step(latents)}

    def _show(self, chunk: Sequence[Item], latents: Any, done: int, steps: int) -> None:
        """Decode previews for those who asked for them and are still there."""
        for row, item in enumerate(chunk):
            number = preview_number(done, steps, self._sitting.drawings[item.drawing].previews)
            if number is not None and self._sitting.is_present(item.drawing):
                pixels = preview(self._pipe, latents[row : row + 1], self._fed)
                if pixels is not None:
                    self._sitting.preview(item, number, pixels)

    def _scale_of(self) -> int:
        """Give what an upscaler multiplies by. Raises RefusedInput for more than it can."""
        own = OWN_SCALE.get(type(self._pipe).__name__)
        asked = self._settings.scale
        if own is not None and asked is not None and asked > own:
            raise RefusedInput(f"scale must be at most {own} for this model.")
        return asked or own or USUAL_SCALE

    def _fed_settings(self) -> Settings:
        """Give the settings of what the pipeline is fed: one that is no upscaler draws over a picture made larger."""
        settings = self._settings
        if settings.role != "upscale" or type(self._pipe).__name__ in OWN_SCALE:
            return settings
        size = settings.size[0] * self._scale, settings.size[1] * self._scale
        return Settings(role="upscale", size=size, follows=True, steps=settings.steps)

    def _restored(self, drawing: Drawing, pixels: Pixels) -> Pixels:
        """Put back what a mask protects, for pipelines that take no mask."""
        size = pixels.shape[1], pixels.shape[0]
        before = np.asarray(fitted(drawing.pictures[0], size), np.float32) / 255
        share = np.asarray(fitted(drawing.mask or Image.new("L", size), size), np.float32)[:, :, np.newaxis] / 255
        return (pixels * share + before * (1 - share)).astype(np.float32)


def preview(pipe: Any, latents: Any, size: tuple[int, int]) -> Pixels | None:
    """Decode the latents of one image half-way; None where the pipeline packs them in a way of its own."""
    vae = getattr(pipe, "vae", None)
    if latents.ndim == 3 and hasattr(pipe, "_unpack_latents"):
        latents = pipe._unpack_latents(latents, size[1], size[0], pipe.vae_scale_factor)
    if latents.ndim != 4 or vae is None or "output_type" not in parameters_of(pipe):
        return None
    shift = getattr(vae.config, "shift_factor", None) or 0
    decoded = vae.decode((latents / vae.config.scaling_factor + shift).to(vae.dtype), return_dict=False)[0]
    pixels: Pixels = (decoded / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1)[0].float().cpu().numpy()
    return pixels
