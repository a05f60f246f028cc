"""How files begin. A caller's word about the type of a file counts for nothing."""

from typing import Literal

import msgspec


class Reader(msgspec.Struct, frozen=True):
    """A form that is taken: its media type, and the one reader (of Pillow or ffmpeg) that may open it."""

    kind: Literal["image", "stream"]
    media_type: str
    name: str


BY_FORM = {
    "PNG": Reader("image", "image/png", "PNG"),
    "JPEG": Reader("image", "image/jpeg", "JPEG"),
    "WebP": Reader("image", "image/webp", "WEBP"),
    "GIF": Reader("image", "image/gif", "GIF"),
    "MP4": Reader("stream", "video/mp4", "mov"),
    "QuickTime": Reader("stream", "video/quicktime", "mov"),
    "WebM": Reader("stream", "video/webm", "matroska"),
    "WAV": Reader("stream", "audio/wav", "wav"),
    "MP3": Reader("stream", "audio/mpeg", "mp3"),
    "FLAC": Reader("stream", "audio/flac", "flac"),
    "Ogg": Reader("stream", "audio/ogg", "ogg"),
    "AAC": Reader("stream", "audio/aac", "aac"),
}

_AT_START: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"\x1a\x45\xdf\xa3", "WebM"),
    (b"fLaC", "FLAC"),
    (b"OggS", "Ogg"),
    (b"ID3", "MP3"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"BM", "BMP"),
    (b"8BPS", "a Photoshop document"),
    (b"%PDF", "PDF"),
    (b"%!PS", "PostScript"),
    (b"<svg", "SVG"),
    (b"<?xml", "XML"),
    (b"#EXTM3U", "a playlist"),
    (b"ffconcat", "a playlist"),
)
_RIFF = {b"WEBP": "WebP", b"WAVE": "WAV", b"AVI ": "AVI"}
_STILL_BRANDS = {b"avif", b"avis", b"heic", b"heix", b"mif1", b"jp2 ", b"jpx "}


def form_of(head: bytes) -> str | None:
    """Name the form of a file by its first 64 bytes: a key of `BY_FORM`, words for one not taken, None if unknown."""
    if head[:4] in (b"RIFF", b"RF64"):
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        if head[8:12] in _STILL_BRANDS:
            return "HEIF or AVIF"
        return "QuickTime" if head[8:12] == b"qt  " else "MP4"
    for magic, form in _AT_START:
        if head.startswith(magic):
            return form
    if len(head) > 2 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        return "AAC" if head[1] & 0xF6 == 0xF0 else "MP3"
    return None
