"""Pictures shown one after the other: a video of all that several steps, or one, have drawn."""

import threading
from collections.abc import Iterator
from fractions import Fraction
from io import BytesIO

import av
from av.video.frame import VideoFrame

from gateway.contract.events import MediaOutput
from gateway.contract.workflow import FramesInput
from workers.engines.workflow.films import add_pictures, encode_pictures, heed, movie, opened, video_of
from workers.engines.workflow.local import Files, source


def frames_to_video(given: FramesInput, files: Files, stopping: threading.Event) -> MediaOutput:
    """Make a video of pictures, as large as the first one. Raises RefusedInput, or FFmpegError for no picture."""
    pictures = [source(image, files) for image in given.images]
    rate = Fraction(given.fps).limit_denominator(1001)
    first = next(_decoded(pictures[:1]))
    file = BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = add_pictures(out, rate, (first.width, first.height))
        shown = encode_pictures(out, stream, heed(_decoded(pictures), stopping), rate)
        size = (stream.width, stream.height)
    return movie(file, size, shown, shown / rate)


def _decoded(pictures: list[bytes]) -> Iterator[VideoFrame]:
    for data in pictures:
        with opened(data) as picture:
            video_of(picture)
            yield next(picture.decode(video=0))
