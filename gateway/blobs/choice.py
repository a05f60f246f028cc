"""Which backend a setting names: a folder, as a path or `file:///path`, or a bucket, as `s3://bucket/prefix`."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from gateway.blobs.local import LocalBlobs
from gateway.blobs.s3 import S3Blobs
from gateway.blobs.store import BlobPlace, BlobStore


def check_place(place: BlobPlace) -> None:
    """Raise ValueError where an address is of no kind that can be opened."""
    if urlsplit(place.url).scheme != "s3" or not urlsplit(place.url).netloc:
        _folder(place.url)


def open_blobs(place: BlobPlace) -> BlobStore:
    """Open the store at an address; what else stands in `place` is for buckets. Raises ValueError."""
    check_place(place)
    if urlsplit(place.url).scheme == "s3":
        return S3Blobs(place)
    return LocalBlobs(_folder(place.url))


def _folder(url: str) -> Path:
    parts = urlsplit(url)
    if url and "://" not in url:
        return Path(url)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path:
        return Path(unquote(parts.path))
    raise ValueError("media lie in a folder (a path, or file:///path) or in a bucket (s3://bucket/prefix)")
