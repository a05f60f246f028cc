"""A running system whose models take media: it may fetch from one loopback address, and from no other."""

from pathlib import Path

from tests.media.websites import ALLOWED

CATALOG = Path(__file__).parent / "catalog.yaml"
SERVED = ("picture", "film", "ear", "voice")
IMAGE_BYTES = 2 * 1024 * 1024
SETTINGS = {
    "FAREGATE_FETCH_ALLOW": f"{ALLOWED}/32",
    "FAREGATE_MAX_IMAGE_BYTES": str(IMAGE_BYTES),
    "FAREGATE_MAX_VIDEO_FRAMES": "1000",
    "FAREGATE_MAX_AUDIO_S": "60",
    "FAREGATE_MEDIA_SWEEP_S": "0.5",
}
