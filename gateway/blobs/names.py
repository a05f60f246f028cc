"""How blobs are called: by day, then by what they belong to, so that folders stay small and age can be read off a name.

Outputs   `2026/11/21/req_<32 hex>-<attempt>[-<index>].<ext>`  written by a worker, one attempt each
Inputs    `2026/11/21/req_<32 hex>-in-<index>.<ext>`           written by a gateway before the request is admitted
Notes     `2026/11/21/req_<32 hex>-job.json`                   written by a worker that buys a job at an upstream
Uploads   `files/2026/11/21/file_<32 hex>.<ext>`               written by a gateway for `POST /v1/files`
"""

import re
from datetime import UTC, datetime

import msgspec

EXTENSIONS = {
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "opus",
    "audio/pcm": "pcm",
    "audio/wav": "wav",
    "audio/webm": "weba",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
"""How a file of each media type ends."""

UNKNOWN = "application/octet-stream"
UPLOADS = "files/"
MOST_NAME_CHARS = 200

_TYPES = {extension: media_type for media_type, extension in EXTENSIONS.items()}
_NAME = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_OF_REQUEST = re.compile(
    r"\d{4}/\d{2}/\d{2}/(req_[0-9a-f]{32})-(?:in-\d{1,3}|job|(?P<attempt>\d{1,5})(?:-\d{1,3})?)\.[a-z0-9]{1,8}"
)
_OF_FILE = re.compile(r"files/\d{4}/\d{2}/\d{2}/(file_[0-9a-f]{32})\.[a-z0-9]{1,8}")


class BlobOwner(msgspec.Struct, frozen=True):
    """What a blob belongs to, as its name says."""

    request: str = ""
    attempt: int | None = None
    """None for an input of the request, and for the note of its job."""
    file: str = ""


def check_name(name: str) -> None:
    """Raise ValueError unless a text may be a blob's name: a relative path of plain characters, no step up in it."""
    if len(name) > MOST_NAME_CHARS or _NAME.fullmatch(name) is None:
        raise ValueError("not a blob's name")


def check_prefix(prefix: str) -> None:
    """Raise ValueError unless a text is empty or names a folder, with its slash."""
    if prefix:
        check_name(prefix.removesuffix("/"))
        if not prefix.endswith("/"):
            raise ValueError("a prefix ends with a slash")


def output_name(request_id: str, attempt: int, media_type: str, index: int | None = None) -> str:
    """Name an output of one attempt; `index` counts the items of a gallery from 0."""
    item = "" if index is None else f"-{index}"
    return f"{_day(request_id[4:])}/{request_id}-{attempt}{item}.{extension(media_type)}"


def input_name(request_id: str, index: int, media_type: str) -> str:
    """Name an input of a request that is still to be admitted; `index` counts its inputs from 0."""
    return f"{_day(request_id[4:])}/{request_id}-in-{index}.{extension(media_type)}"


def job_name(request_id: str) -> str:
    """Name the note of the job that a request has bought at an upstream."""
    return f"{_day(request_id[4:])}/{request_id}-job.json"


def upload_name(file_id: str, media_type: str) -> str:
    """Name an uploaded file."""
    return f"{UPLOADS}{_day(file_id[5:])}/{file_id}.{extension(media_type)}"


def owner_of(name: str) -> BlobOwner | None:
    """Read from a name what its blob belongs to; None for a name that nothing of ours gives."""
    if found := _OF_REQUEST.fullmatch(name):
        return BlobOwner(request=found[1], attempt=int(found["attempt"]) if found["attempt"] else None)
    if found := _OF_FILE.fullmatch(name):
        return BlobOwner(file=found[1])
    return None


def extension(media_type: str) -> str:
    """Give how a file of a media type ends."""
    return EXTENSIONS.get(media_type, "bin")


def media_type_of(name: str) -> str:
    """Give the media type that a name's ending stands for."""
    return _TYPES.get(name.rpartition(".")[2], UNKNOWN)


def born_ms(hexadecimal: str) -> int:
    """Give the Unix milliseconds in the 32 hexadecimal digits of a UUIDv7."""
    return int(hexadecimal[:12], 16)


def _day(hexadecimal: str) -> str:
    return f"{datetime.fromtimestamp(born_ms(hexadecimal) / 1000, UTC):%Y/%m/%d}"
