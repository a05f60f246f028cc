"""What all tasks share that make one picture from another."""

from gateway.contract.inputs import ImageBlendInput, ImageEditInput, ImageRelightInput, ImageRestyleInput
from workers.engines.diffusers.drawing import Drawing, Role
from workers.engines.diffusers.pictures import Picture
from workers.engines.diffusers.tasks.asked import encoding_of, image_settings, seeds_of, size_after, words_of

FromPicture = ImageEditInput | ImageBlendInput | ImageRelightInput | ImageRestyleInput


def redraw(
    given: FromPicture,
    picture: Picture,
    *,
    prompt: str | None = None,
    usual_strength: float,
    mask: Picture | None = None,
) -> Drawing:
    """Draw a picture again, as the input says; inside of the mask only, where there is one."""
    role: Role = "image2image" if mask is None else "inpaint"
    size, follows = size_after(given, picture)
    return Drawing(
        settings=image_settings(given, role, size, follows=follows, usual_strength=usual_strength),
        prompt=words_of(given) if prompt is None else prompt,
        negative_prompt=given.negative_prompt or "",
        seeds=seeds_of(given.seed, given.n or 1),
        pictures=(picture,),
        mask=mask,
        previews=given.partial_images or 0,
        encoding=encoding_of(given),
    )
