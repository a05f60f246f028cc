"""From the bodies of `POST /v1/videos` and of a remix to calls."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Media
from gateway.contract.inputs.video import MAX_VIDEO_S
from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest
from gateway.flow.call import Call
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.endpoint import Writer
from gateway.http.errors import Headers
from gateway.http.media import MediaFamily
from gateway.http.openai.media_bodies import Reference, RemixBody, VideoBody
from gateway.http.openai.offers import Offers, fitting
from gateway.http.openai.parse import Received, media_call

VIDEO_TASKS: tuple[Task, ...] = ("text-to-video", "image-to-video", "video-upscale", "talking-head")
Seconds = Annotated[float, Meta(gt=0, le=MAX_VIDEO_S)]
_BESIDE = frozenset({"model", "input_reference", "user", "metadata", "priority", "max_price", "models", "provider"})
CALLED = {"image": "input_reference", "text": "prompt"}


class NoShape:
    """A video is never in the answer to the call that asked for it."""

    stream = False

    def whole(self, answer: Answer) -> tuple[Headers, bytes]:
        """Videos are read by their id."""
        raise AssertionError("a video is not waited for")

    def writer(self, placed: Placed) -> Writer:
        """Videos are read by their id."""
        raise AssertionError("a video is not waited for")


class VideoFamily(MediaFamily):
    """Videos: from words, from a picture, from a smaller video, or of a face that speaks."""

    path = "/v1/videos"
    body = VideoBody
    files = {"input_reference": "image", "image": "image", "video": "video", "audio": "audio"}

    def read(self, received: Received, asked: VideoBody) -> tuple[Call, NoShape]:
        """Parse a call."""
        given = {name: getattr(asked, name) for name in asked.__struct_fields__ if name not in _BESIDE}
        given = {name: value for name, value in given.items() if value is not None}
        if asked.input_reference is not None:
            given["image"] = _referred(asked.input_reference)
        if asked.seconds is not None:
            given["seconds"] = _seconds(asked.seconds)
        notes = {"prompt": asked.prompt or asked.text or "", "size": asked.size or ""}
        notes["seconds"] = seconds_text(given.get("seconds", 0.0))
        call = media_call(received, asked, fitting(_readings(given), CALLED), "async")
        told = {name: text for name, text in notes.items() if text}
        return msgspec.structs.replace(call, notes=told), NoShape()


def _readings(given: dict[str, Any]) -> list[tuple[Task, dict[str, Any]]]:
    """Say what the fields may mean. A face says the prompt where no text is given."""
    if "video" in given:
        return [("video-upscale", given)]
    if "image" not in given:
        return [("text-to-video", given)]
    spoken = given if given.keys() & {"text", "audio"} else _renamed(given, "prompt", "text")
    return [("image-to-video", given), ("talking-head", spoken)]


def _renamed(given: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in given.items()}


def _referred(reference: str | Reference) -> str:
    if isinstance(reference, str):
        return reference
    if (reference.file_id is None) == (reference.image_url is None):
        raise InvalidRequest("Give either file_id or image_url.", param="input_reference")
    return reference.file_id or reference.image_url or ""


def _seconds(given: float | str) -> float:
    """Read a length: the SDK sends it as text."""
    try:
        return msgspec.convert(given, Seconds, strict=False)
    except msgspec.ValidationError:
        raise InvalidRequest(f"seconds must be a number above 0, at most {MAX_VIDEO_S}.", param="seconds") from None


def seconds_text(seconds: float) -> str:
    """Write a length as the SDK reads it: text."""
    return f"{seconds:g}" if seconds else ""


def remix_offers(task: Task, video: MediaOutput, image: Media | None, asked: RemixBody) -> Offers:
    """Ask for a video like another with other words: of its size, its length and its seed.

    A video that began with a picture begins with its own first one. Raises InvalidRequest for one that is made anew
    from no words.
    """
    if task == "video-upscale":
        raise InvalidRequest("This video was made from another without words: there is nothing to remix.")
    given: dict[str, Any] = {"prompt": asked.prompt, "size": f"{video.width}x{video.height}", "seed": video.seed}
    if video.frames and video.duration_ms:
        given |= {"frames": video.frames, "fps": max(1, round(video.frames * 1000 / video.duration_ms))}
    if task == "talking-head":
        given = _renamed(given, "prompt", "text")
        given.pop("frames", None)
    if image is not None:
        given["image"] = image
    return fitting([(task, {name: value for name, value in given.items() if value is not None})], CALLED)
