"""One call of a pipeline for several requests: what has been drawn, who has left, and who watches."""

from collections.abc import Callable, Sequence

import msgspec

from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.pictures import Pixels


class Deserted(Exception):
    """Everybody for whom this was drawn has left: the pipeline is to stop here."""


class Item(msgspec.Struct, frozen=True):
    """One image (or video) of one request: by which request of the sitting, and which of its images."""

    drawing: int
    index: int


class Step(msgspec.Struct, frozen=True):
    """A denoising step has been run: for how many images of each request, and how many steps an image takes in all."""

    images: dict[int, int]
    of: int


class Preview(msgspec.Struct, frozen=True):
    """What an image looks like half-way. `number` counts the previews of the image."""

    item: Item
    number: int
    pixels: Pixels


class Sitting:
    """What the thread of torch and the event loop share about a call. `tell` is called in the thread."""

    def __init__(self, drawings: Sequence[Drawing], tell: Callable[[Step | Preview], None]) -> None:
        self.drawings = drawings
        self._present = set(range(len(drawings)))
        self._tell = tell

    def leave(self, drawing: int) -> None:
        """Note that a request is wanted no more."""
        self._present.discard(drawing)

    def is_present(self, drawing: int) -> bool:
        """Say whether a request is still wanted."""
        return drawing in self._present

    def items(self) -> list[Item]:
        """List all images that are to be drawn."""
        return [
            Item(drawing, index)
            for drawing, wanted in enumerate(self.drawings)
            for index in range(len(wanted.seeds))
            if drawing in self._present
        ]

    def check(self) -> None:
        """Raise Deserted when nobody is left."""
        if not self._present:
            raise Deserted

    def stepped(self, items: Sequence[Item], steps: int) -> None:
        """Tell that these images have gained a step. Raises Deserted when nobody is left."""
        self.check()
        images: dict[int, int] = {}
        for item in items:
            images[item.drawing] = images.get(item.drawing, 0) + 1
        self._tell(Step(images, steps))

    def preview(self, item: Item, number: int, pixels: Pixels) -> None:
        """Show what an image looks like now."""
        self._tell(Preview(item, number, pixels))


def preview_number(done: int, steps: int, previews: int) -> int | None:
    """Say which preview is due after `done` of all steps, if any: they are spread evenly between start and end."""
    due = [round(steps * (number + 1) / (previews + 1)) for number in range(previews)]
    return due.index(done) if done in due and done < steps else None
