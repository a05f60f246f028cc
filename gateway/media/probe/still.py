"""Images, by Pillow: first the size from the header; what is small enough is decoded, to see that it can be."""

import warnings
from typing import Any, BinaryIO

from gateway.media.probe.refusal import Refused
from gateway.media.probe.signatures import Reader

MOST_IMAGE_FRAMES = 1000


def look_at_image(file: BinaryIO, reader: Reader, limits: dict[str, int]) -> dict[str, Any]:
    """Give type and size of an image whose first picture was decoded whole. Raises Refused."""
    from PIL import Image, ImageFile

    Image.MAX_IMAGE_PIXELS = None  # the limit below comes first, and is ours
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    warnings.simplefilter("ignore")
    try:
        with Image.open(file, formats=[reader.name]) as image:
            width, height = image.size
            if width * height > limits["image_pixels"]:
                raise Refused("over_limit", f"has {width}x{height} pixels; at most {limits['image_pixels']} are taken")
            frames = getattr(image, "n_frames", 1)
            if frames > MOST_IMAGE_FRAMES:
                raise Refused("over_limit", f"has more than {MOST_IMAGE_FRAMES} pictures")
            image.load()
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError, ZeroDivisionError, KeyError):
        # What Pillow's readers raise for damaged files; their words may quote the file.
        raise Refused("unreadable", f"is a damaged {reader.name} image") from None
    return {"media_type": reader.media_type, "width": width, "height": height, "frames": frames if frames > 1 else 0}
