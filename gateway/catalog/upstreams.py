"""Reading the upstreams of a catalog: who serves models elsewhere, and how they are spoken to."""

import ipaddress
from typing import get_args
from urllib.parse import urlsplit

from gateway.catalog.fields import Fields
from gateway.catalog.model import Pool, Upstream
from gateway.catalog.names import UPSTREAM_NAME
from gateway.catalog.problems import Report, shown
from gateway.contract.pools import ProtocolName
from gateway.contract.tasks import Task

PROTOCOLS: tuple[ProtocolName, ...] = get_args(ProtocolName)
UPSTREAM_FIELDS = ("protocol", "url", "pool", "timeout_s", "concurrency")

_IMAGES: tuple[Task, ...] = (
    "text-to-image",
    "image-edit",
    "image-blend",
    "image-relight",
    "image-restyle",
    "image-upscale",
)
_VIDEOS: tuple[Task, ...] = ("text-to-video", "image-to-video", "video-upscale", "talking-head")
_SOUNDS: tuple[Task, ...] = ("text-to-speech", "voice-clone", "music")

PROTOCOL_TASKS: dict[ProtocolName, tuple[Task, ...]] = {
    "openai": (
        "chat",
        "completion",
        "embedding",
        "rerank",
        "text-to-image",
        "image-edit",
        "image-blend",
        "text-to-speech",
        "speech-to-text",
        "text-to-video",
        "image-to-video",
    ),
    "gmi": (*_IMAGES, *_VIDEOS, *_SOUNDS),
    "fal": (*_IMAGES, *_VIDEOS, *_SOUNDS, "speech-to-text"),
    "replicate": ("chat", "completion", *_IMAGES, *_VIDEOS, *_SOUNDS, "speech-to-text"),
    "elevenlabs": (*_SOUNDS, "speech-to-text"),
    "minimax": ("text-to-image", "text-to-video", "image-to-video", *_SOUNDS),
    "kling": ("text-to-image", "image-edit", "text-to-video", "image-to-video", "talking-head"),
}
"""What can be asked of an upstream, by the protocol it speaks."""

URL_WORDS = "an https address without a slash, a query or a key at its end, such as https://api.example.com/v1"


def read_upstreams(fields: Fields, pools: dict[str, Pool], report: Report) -> dict[str, Upstream]:
    """Read the section `upstreams`."""
    found: dict[str, Upstream] = {}
    for name, line, entry in fields.named("upstreams"):
        UPSTREAM_NAME.check(report, line, name, "upstreams")
        found[name] = _upstream(name, entry, pools)
    return found


def _upstream(name: str, fields: Fields, pools: dict[str, Pool]) -> Upstream:
    fields.known(UPSTREAM_FIELDS)
    url, pool = fields.text("url"), fields.text("pool")
    if url and not is_address(url):
        fields.wrong("url", URL_WORDS)
    able = [each.name for each in pools.values() if each.engine == "upstream"]
    if pool and pool not in able:
        fields.wrong("pool", f"one of the pools of the engine upstream ({', '.join(able) or 'there are none'})")
    return Upstream(
        name=name,
        protocol=fields.word("protocol", PROTOCOLS) or "openai",
        url=url,
        pool=pool,
        timeout_s=fields.whole("timeout_s", 60, 1, 3600),
        concurrency=fields.whole("concurrency", 256, 1, 100_000),
    )


def is_address(url: str) -> bool:
    """Say whether an API may begin at an address: https, or http on this machine alone; and nothing hidden in it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    clean = url.isascii() and url.isprintable() and not any(mark in url for mark in ' \\@?#"<>{}')
    plain = clean and host and not url.endswith("/") and ".." not in parts.path and "//" not in parts.path
    return bool(plain) and (parts.scheme == "https" or (parts.scheme == "http" and _is_here(host)))


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def cannot_serve(upstream: Upstream, tasks: tuple[Task, ...]) -> str:
    """Say which of a model's tasks an upstream cannot serve; empty where it serves all."""
    able = PROTOCOL_TASKS[upstream.protocol]
    missing = [task for task in tasks if task not in able]
    return shown(", ".join(missing)) if missing else ""
