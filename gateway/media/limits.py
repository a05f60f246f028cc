"""What media of callers may be: which kind fits which field, and how large each kind may be."""

from typing import Literal

import msgspec

Kind = Literal["image", "video", "audio"]

KINDS: dict[str, Kind] = {
    "image": "image",
    "images": "image",
    "mask": "image",
    "video": "video",
    "audio": "audio",
    "sample": "audio",
    "file": "audio",
}
"""The kind that each media field of an input takes. Where sound is wanted, the sound of a video will do."""


class MediaLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most of each kind. Beyond bytes it is refused unread, beyond the rest before it is decoded."""

    image_bytes: int = 50 * 1024 * 1024
    image_pixels: int = 50_000_000
    video_bytes: int = 200 * 1024 * 1024
    video_pixels: int = 8_300_000
    """Of one frame: 4K."""
    video_frames: int = 9_000
    video_s: int = 600
    audio_bytes: int = 100 * 1024 * 1024
    audio_s: int = 7_200

    def most_bytes(self, kind: Kind) -> int:
        """Give the most bytes of a kind."""
        return {"image": self.image_bytes, "video": self.video_bytes, "audio": self.audio_bytes}[kind]
