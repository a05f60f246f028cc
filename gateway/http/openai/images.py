"""`POST /v1/images/generations`, `/v1/images/edits` and `/v1/images/variations`."""

from collections.abc import Sequence

from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest
from gateway.flow.call import Call, Mode
from gateway.http.media import MediaFamily
from gateway.http.openai.image_shape import ImageShape
from gateway.http.openai.media_bodies import ImageAnswer, ImageBody, ImageEditBody, ImageVariationBody
from gateway.http.openai.offers import Offers, given_in, offers_of
from gateway.http.openai.parse import Received, media_call
from gateway.media.addresses import Addresses

ONE_IMAGE: tuple[Task, ...] = ("image-edit", "image-restyle", "image-relight", "image-upscale")
VARYING: tuple[Task, ...] = ("image-restyle", "image-edit")
VARIATION_PROMPT = "A variation of this picture."
CALLED = {"images": "image"}


class _Images(MediaFamily):
    """What the three have in common."""

    event = ""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses

    def call(self, received: Received, asked: ImageAnswer, offers: Offers) -> tuple[Call, ImageShape]:
        """Make the call, and how it is to be answered."""
        mode: Mode = "stream" if asked.stream else "wait"
        return media_call(received, asked, offers, mode), ImageShape(asked, self.event, self._addresses)


class ImageFamily(_Images):
    """Images from words."""

    path = "/v1/images/generations"
    body = ImageBody
    event = "image_generation"

    def read(self, received: Received, asked: ImageBody) -> tuple[Call, ImageShape]:
        """Parse a call."""
        tasks: Sequence[Task] = ("text-to-image",)
        return self.call(received, asked, offers_of(given_in(asked, tasks), tasks))


class ImageEditFamily(_Images):
    """Images from images: one edited, relit, restyled or made larger; several made into one."""

    path = "/v1/images/edits"
    body = ImageEditBody
    files = {"image": "image", "image[]": "image", "mask": "mask"}
    event = "image_edit"

    def read(self, received: Received, asked: ImageEditBody) -> tuple[Call, ImageShape]:
        """Parse a call."""
        given = given_in(asked, ONE_IMAGE) | given_in(asked, ("image-blend",))
        images = asked.image if isinstance(asked.image, list) else [asked.image]
        if len(images) == 1:
            return self.call(received, asked, offers_of(given | {"image": images[0]}, ONE_IMAGE))
        if asked.mask is not None:
            raise InvalidRequest("A mask goes with one image.", param="mask")
        del given["image"]
        return self.call(received, asked, offers_of(given | {"images": images}, ("image-blend",), CALLED))


class ImageVariationFamily(_Images):
    """An image once more, and a little different."""

    path = "/v1/images/variations"
    body = ImageVariationBody
    files = {"image": "image"}
    event = "image_variation"

    def read(self, received: Received, asked: ImageVariationBody) -> tuple[Call, ImageShape]:
        """Parse a call."""
        given = {"prompt": VARIATION_PROMPT} | given_in(asked, VARYING)
        return self.call(received, asked, offers_of(given, VARYING))
