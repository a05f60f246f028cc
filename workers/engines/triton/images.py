"""Images by a model that takes a prompt and gives pixels, or files."""

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path

from tritonclient.grpc import InferInput, InferResult

from gateway.contract.events import GalleryOutput, MediaOutput
from gateway.contract.inputs import ImageInput, size_of
from gateway.contract.inputs.image import DEFAULT_STEPS
from gateway.contract.pools import ServedModel
from workers.engine import EngineError, RefusedInput, Run
from workers.engines.triton.model import Place
from workers.engines.triton.options import BadModel, InputField, OutputField, TritonOptions
from workers.engines.triton.pictures import Picture, picture_of
from workers.engines.triton.tensors import Value, row, scalar, whole_number

OPTIONAL: tuple[InputField, ...] = ("negative_prompt", "steps", "guidance", "seed")
"""Fields that a model need not take; a caller who gives one then is refused."""
SEEDS = 2**31
"""Seeds are taken modulo this, which fits every type of integer that a model may want."""


class ImageModel:
    """A model that makes images, one after the other."""

    def __init__(self, place: Place, options: TritonOptions) -> None:
        self._place = place
        self._options = options
        self._in: dict[InputField, str] = {field: name for name, field in options.inputs.items()}
        self._out: dict[OutputField, str] = {field: name for name, field in options.outputs.items()}

    @classmethod
    async def make(cls, model: ServedModel, options: TritonOptions, place: Place, models_dir: Path) -> "ImageModel":
        """Check what the catalog says of tensors. Raises BadModel."""
        if "prompt" not in options.inputs.values():
            raise BadModel("inputs needs the tensor that takes the prompt")
        return cls(place, options)

    def width(self, run: Run) -> int:
        """Images are made one after the other."""
        return 1

    async def run(self, run: Run) -> MediaOutput | GalleryOutput:
        """Make the images of one request. Raises RefusedInput, EngineError and EngineLost."""
        given = run.input
        if not isinstance(given, ImageInput):
            raise RefusedInput(f"This model makes images of words, and does not do the task {run.request.task}.")
        for field in OPTIONAL:
            if getattr(given, field) is not None and field not in self._in:
                raise RefusedInput(f"This model does not take {field}: leave it out.")
        count = given.n or 1
        first = secrets.randbelow(SEEDS) if given.seed is None else given.seed % SEEDS
        made = []
        for index in range(count):
            made.append(await self._paint(run, given, (first + index) % SEEDS, index))
            run.progress((index + 1) / count)
        return made[0] if count == 1 else GalleryOutput(made)

    async def _paint(self, run: Run, given: ImageInput, seed: int, index: int) -> MediaOutput:
        with run.phases.timed("transfer"):
            inputs = [*self._constants(), *self._inputs(given, seed)]
        run.began()
        with run.phases.timed("forward"):
            result = await self._place.answer(run, inputs, self._options.outputs, str(index))
        with run.phases.timed("postprocess"):
            name = self._out["image"]
            picture = await asyncio.to_thread(picture_of, result, name, self._options, given)
        self._check_size(given, picture)
        run.units.images += 1
        run.units.pixels += picture.width * picture.height
        run.units.steps += self._steps(given, result)
        kept = seed if "seed" in self._in else None
        return MediaOutput(
            picture.media_type, len(picture.data), picture.data, width=picture.width, height=picture.height, seed=kept
        )

    def _constants(self) -> Iterator[InferInput]:
        known = self._place.signature.inputs
        for name, value in self._options.constants.items():
            yield row(known[name], value) if isinstance(value, list) else scalar(known[name], value)

    def _inputs(self, given: ImageInput, seed: int) -> Iterator[InferInput]:
        """Make the tensors of the caller's fields; what is neither given nor needed stays out."""
        width, height = size_of(given.size)
        values: dict[InputField, Value | None] = {
            "prompt": given.prompt,
            "negative_prompt": given.negative_prompt,
            "width": width,
            "height": height,
            "steps": given.steps or DEFAULT_STEPS,
            "guidance": given.guidance,
            "seed": seed,
        }
        for field, name in self._in.items():
            tensor, value = self._place.signature.inputs[name], values[field]
            if value is None and tensor.optional:
                continue
            if value is None and tensor.dtype != "BYTES":
                raise RefusedInput(f"This model needs {field}.")
            yield scalar(tensor, "" if value is None else value)

    def _check_size(self, given: ImageInput, picture: Picture) -> None:
        """Hold the image against what was asked for and quoted: no other size when named, never a larger one."""
        width, height = size_of(given.size)
        named = given.size not in (None, "auto") and (picture.width, picture.height) != (width, height)
        if named or picture.width * picture.height > width * height:
            raise EngineError(
                f"The model made an image of {picture.width}x{picture.height}, and {width}x{height} was to be made: "
                "ask for the size that it makes."
            )

    def _steps(self, given: ImageInput, result: InferResult) -> int:
        """Say how many steps an image took: as the model tells, else as it was told; within what was quoted."""
        most = given.steps or DEFAULT_STEPS
        told = self._out.get("steps")
        if told is not None:
            return min(whole_number(result, told), most)
        return most if "steps" in self._in else 0
