"""How the OpenAI family shows a video: in four statuses, for its clients know no others."""

import time
from typing import Any

from gateway.contract.events import MediaOutput, media_of
from gateway.contract.phases import PHASE_NAMES
from gateway.contract.states import Status
from gateway.flow.respond import failure
from gateway.flow.view import View
from gateway.http.answers import server_timing
from gateway.http.openai.video_calls import seconds_text
from gateway.money import usd_text

STATUSES: dict[Status, str] = {
    "queued": "queued",
    "running": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "cancelled": "failed",
    "expired": "failed",
}
LEAST_POLL_MS = 250
MOST_POLL_MS = 5_000


def video_of(view: View, variant: str = "video") -> MediaOutput | None:
    """Give the file of a finished video: itself, its `thumbnail` or its `spritesheet`; None where there is none."""
    role = "" if variant == "video" else variant
    return next((item for item in media_of(view.output) if item.role == role), None)


def video_view(view: View) -> dict[str, Any]:
    """Show a video. Until it is made, its length and size are those that were asked for."""
    made, notes = video_of(view), view.notes
    shown: dict[str, Any] = {
        "id": view.id,
        "object": "video",
        "model": view.model,
        "status": STATUSES[view.status],
        "progress": 100 if view.status == "succeeded" else int((view.progress or 0) * 100),
        "created_at": view.created_us // 1_000_000,
        "completed_at": _unix(view.finished_us) if view.status == "succeeded" else None,
        "expires_at": _unix(view.expires_us),
        "prompt": notes.get("prompt"),
        "remixed_from_video_id": notes.get("remixed_from"),
        "seconds": seconds_text(made.duration_ms / 1000) if made else notes.get("seconds"),
        "size": f"{made.width}x{made.height}" if made else notes.get("size"),
        "error": None,
    }
    if view.finished_us is None:
        return shown | {"position": view.position, "hold_nanos": view.hold_nanos}
    if view.status != "succeeded" and view.reason is not None:
        told = failure(view.id, view.reason, view.detail)
        shown["error"] = {"code": told.code, "message": told.message}
    return shown | {"charge_nanos": view.charge_nanos, "price_version": view.price_version}


def video_headers(view: View) -> dict[str, str]:
    """Give the headers of an answer about a video: its request and price, and when to look again or what it cost."""
    headers = {
        "x-request-id": view.id,
        "x-faregate-price-version": str(view.price_version),
        "cache-control": "no-store",
    }
    if view.finished_us is None:
        age_ms = time.time_ns() // 1_000_000 - view.created_us // 1000
        poll_ms = min(max(age_ms // 10, LEAST_POLL_MS), MOST_POLL_MS)
        return headers | {"x-faregate-hold-nanos": str(view.hold_nanos), "openai-poll-after-ms": str(poll_ms)}
    total_us = sum(getattr(view.phases, f"{name}_us") for name in PHASE_NAMES)
    return headers | {
        "x-faregate-charge-nanos": str(view.charge_nanos),
        "x-faregate-cost": usd_text(view.charge_nanos),
        "server-timing": server_timing(view.phases, total_us),
    }


def _unix(us: int | None) -> int | None:
    return None if us is None else us // 1_000_000
