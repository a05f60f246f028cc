"""`text-to-image`."""

from gateway.contract.inputs import ImageInput, size_of
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.tasks.asked import encoding_of, image_settings, seeds_of, words_of


def draw(given: ImageInput, _: dict[str, list[bytes]]) -> Drawing:
    """Draw from words alone."""
    return Drawing(
        settings=image_settings(given, "text2image", size_of(given.size)),
        prompt=words_of(given),
        negative_prompt=given.negative_prompt or "",
        seeds=seeds_of(given.seed, given.n or 1),
        previews=given.partial_images or 0,
        encoding=encoding_of(given),
    )
