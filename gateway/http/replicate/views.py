"""How Replicate's API shows requests: as predictions, in five statuses, for its clients know no others."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.contract.events import GalleryOutput, MediaOutput, Output, TextOutput, VectorOutput, asked_for
from gateway.contract.phases import PHASE_NAMES
from gateway.contract.states import Status
from gateway.flow.respond import failure
from gateway.flow.view import View
from gateway.http.asked import asked_of
from gateway.http.native.attempts import counted
from gateway.http.native.output_views import output_view
from gateway.http.replicate.names import full_name, version_id
from gateway.media.addresses import Addresses
from gateway.money import usd_text

PREFIX = "/replicate/v1"
STATUSES: dict[Status, str] = {
    "queued": "starting",
    "running": "processing",
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "canceled",
    "expired": "failed",
}
CANCEL_NOTE = "cancel_after"
"""Notes that the caller set the deadline, so that its end is a cancellation and no failure."""
BAR = 10


def prediction_view(view: View, addresses: Addresses) -> dict[str, Any]:
    """Show a request as a prediction, with what it cost once it has ended."""
    owner, name = full_name(view.model)
    shown: dict[str, Any] = {
        "id": view.id,
        "model": f"{owner}/{name}",
        "version": version_id(view.model),
        "input": asked_of(view),
        "output": prediction_output(view.output, addresses),
        "logs": _logs(view),
        "error": error_of(view),
        "status": status_of(view),
        "created_at": instant(view.created_us),
        "started_at": None,
        "completed_at": None if view.finished_us is None else instant(view.finished_us),
        "deadline": None if view.deadline_us is None else instant(view.deadline_us),
        "data_removed": view.finished_us is not None and view.expires_us is None,
        "metrics": None,
        "urls": _urls(view.id, addresses.base),
        "hold_nanos": view.hold_nanos,
        "price_version": view.price_version,
    }
    if view.finished_us is None:
        return shown | {"position": view.position}
    if view.worker:
        shown["started_at"] = instant(view.created_us + view.phases.queue_us)
    worked_us = sum(getattr(view.phases, f"{phase}_us") for phase in PHASE_NAMES if phase != "queue")
    shown["metrics"] = {"predict_time": worked_us / 1e6, "total_time": (view.finished_us - view.created_us) / 1e6}
    shown["metrics"] |= counted(view.units)
    return shown | {"charge_nanos": view.charge_nanos, "cost": msgspec.Raw(usd_text(view.charge_nanos).encode())}


def status_of(view: View) -> str:
    """Give the status. A deadline that the caller set cancels; the model's own is a failure."""
    return "canceled" if view.status == "expired" and CANCEL_NOTE in view.notes else STATUSES[view.status]


def error_of(view: View) -> str | None:
    """Say why a request failed; None where it did not."""
    if view.finished_us is None or view.reason is None or view.status == "succeeded":
        return None
    return failure(view.id, view.reason, view.detail).message


def prediction_output(output: Output | None, addresses: Addresses) -> Any:
    """Show an output: a list of addresses for images, one for a video or sound, a list of texts for text."""
    if output is None:
        return None
    if isinstance(output, MediaOutput | GalleryOutput):
        items = asked_for(output)
        urls = [addresses.of_output(item) for item in items]
        return urls if not items or items[0].media_type.startswith("image/") else urls[0]
    if isinstance(output, TextOutput):
        return [choice.text for choice in output.choices]
    shown = output_view(output, addresses)
    assert shown is not None
    return shown["embeddings"] if isinstance(output, VectorOutput) else shown


OUTPUT_SCHEMAS: dict[str, dict[str, Any]] = {
    "image": {"type": "array", "items": {"type": "string", "format": "uri"}, "title": "Output"},
    "file": {"type": "string", "format": "uri", "title": "Output"},
    "text": {
        "type": "array",
        "items": {"type": "string"},
        "title": "Output",
        "x-cog-array-type": "iterator",
        "x-cog-array-display": "concatenate",
    },
    "other": {"title": "Output"},
}


def output_schema(task: str) -> dict[str, Any]:
    """Describe what a task puts out."""
    if task in ("chat", "completion"):
        return OUTPUT_SCHEMAS["text"]
    if task in ("embedding", "rerank", "speech-to-text"):
        return OUTPUT_SCHEMAS["other"]
    image = task == "text-to-image" or (task.startswith("image-") and task != "image-to-video")
    return OUTPUT_SCHEMAS["image" if image else "file"]


def instant(unix_us: int) -> str:
    """Write an instant as RFC 3339 has it, in UTC."""
    return datetime.fromtimestamp(unix_us / 1e6, UTC).isoformat().replace("+00:00", "Z")


def _logs(view: View) -> str:
    """Write how far it is as the line that clients read it from: per cent, a bar, and of how many."""
    fraction = 1.0 if view.status == "succeeded" else view.progress
    if fraction is None:
        return ""
    percent, full = int(fraction * 100), int(fraction * BAR)
    return f"{percent}%|{'#' * full}{' ' * (BAR - full)}| {percent}/100"


def _urls(request_id: str, base: str) -> dict[str, str]:
    mine = f"{base}{PREFIX}/predictions/{request_id}"
    return {
        "get": mine,
        "cancel": f"{mine}/cancel",
        "stream": f"{mine}/stream",
        "web": f"{base}/v1/requests/{request_id}",
    }
