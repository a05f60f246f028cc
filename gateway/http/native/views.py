"""How the native family shows a request and its output."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.contract.events import media_of
from gateway.flow.call import CHOICE_NOTE
from gateway.flow.respond import Answer, failure
from gateway.flow.view import View
from gateway.http.answers import money_fields
from gateway.http.native.attempts import attempts_of, counted, phases_ms
from gateway.http.native.output_views import output_view
from gateway.media.addresses import Addresses
from gateway.money import usd_text
from gateway.routing.estimate import Eta


def urls(request_id: str, media: bool = False) -> dict[str, str]:
    """Give the addresses of a request, relative to the host that answered."""
    base = f"/v1/requests/{request_id}"
    known = {"get": base, "events": f"{base}/events", "cancel": f"{base}/cancel"}
    return known | {"output": f"{base}/output"} if media else known


def _instant(unix_us: int | None) -> str | None:
    return (
        datetime.fromtimestamp(unix_us / 1e6, UTC).isoformat().replace("+00:00", "Z") if unix_us is not None else None
    )


def choice_of(note: str) -> msgspec.Raw | None:
    """Give what `auto` chose and why, as it was noted; None where the caller named the model."""
    return msgspec.Raw(note.encode()) if note else None


def eta_view(eta: Eta | None) -> dict[str, dict[str, float]] | None:
    """Show when a request will start and finish, in seconds from now; None where nobody can say."""
    if eta is None:
        return None
    return {"start": msgspec.to_builtins(eta.start), "finish": msgspec.to_builtins(eta.finish)}


def accepted_view(view: View) -> dict[str, Any]:
    """Show a request that has just been accepted."""
    return {
        "id": view.id,
        "status": view.status,
        "model": view.model,
        "choice": choice_of(view.notes.get(CHOICE_NOTE, "")),
        "position": view.position,
        "eta": eta_view(view.eta),
        "hold_nanos": view.hold_nanos,
        "price_version": view.price_version,
        "urls": urls(view.id),
    }


def answer_view(answer: Answer, addresses: Addresses) -> dict[str, Any]:
    """Show a request whose caller waited for it."""
    return {
        "id": answer.id,
        "status": answer.outcome,
        "model": answer.model,
        "choice": choice_of(answer.choice),
        "output": output_view(answer.output, addresses),
        "usage": counted(answer.units) | money_fields(answer),
        "charge_nanos": answer.charge_nanos,
        "hold_nanos": answer.hold_nanos,
        "price_version": answer.price_version,
        "phases_ms": phases_ms(answer.phases),
        "total_ms": answer.total_us / 1000,
        "attempt": answer.attempt,
        "urls": urls(answer.id, bool(media_of(answer.output))),
    }


def request_view(view: View, addresses: Addresses) -> dict[str, Any]:
    """Show a request as it stands, open or ended."""
    shown: dict[str, Any] = {
        "id": view.id,
        "status": view.status,
        "model": view.model,
        "choice": choice_of(view.notes.get(CHOICE_NOTE, "")),
        "task": view.task,
        "created_at": _instant(view.created_us),
        "deadline_at": _instant(view.deadline_us),
        "finished_at": _instant(view.finished_us),
        "hold_nanos": view.hold_nanos,
        "price_version": view.price_version,
        "metadata": view.metadata,
        "urls": urls(view.id, bool(media_of(view.output))),
    }
    if view.finished_us is None:
        return shown | {
            "position": view.position,
            "eta": eta_view(view.eta),
            "attempt": view.attempt,
            "progress": view.progress,
        }
    error = None
    if view.status != "succeeded" and view.reason is not None:
        told = failure(view.id, view.reason, view.detail)
        error = {"code": told.code, "message": told.message}
    return shown | {
        "reason": view.reason,
        "attempt": view.attempt,
        "charge_nanos": view.charge_nanos,
        "cost": msgspec.Raw(usd_text(view.charge_nanos).encode()),
        "usage": counted(view.units),
        "phases_ms": phases_ms(view.phases),
        "total_ms": (view.finished_us - view.created_us) / 1000,
        "attempts": attempts_of(view),
        "lost_attempts": max(view.attempt - 1, 0),
        "output": output_view(view.output, addresses),
        "error": error,
    }
