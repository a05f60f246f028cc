"""How the native family shows a request and its output."""

import struct
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.contract.events import MediaOutput, Output, TextOutput, VectorOutput
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.flow.respond import Answer, failure
from gateway.flow.watch import View
from gateway.http.answers import money_fields
from gateway.http.openai.chat import chat_logprobs
from gateway.money import usd_text


def urls(request_id: str, media: bool = False) -> dict[str, str]:
    """Give the addresses of a request, relative to the host that answered."""
    base = f"/v1/requests/{request_id}"
    known = {"get": base, "events": f"{base}/events", "cancel": f"{base}/cancel"}
    return known | {"output": f"{base}/output"} if media else known


def _instant(unix_us: int | None) -> str | None:
    return (
        datetime.fromtimestamp(unix_us / 1e6, UTC).isoformat().replace("+00:00", "Z") if unix_us is not None else None
    )


def _units(units: Units) -> dict[str, int]:
    told = msgspec.structs.asdict(units)
    return {name: value for name, value in told.items() if value}


def _phases(phases: Phases) -> dict[str, int]:
    return msgspec.structs.asdict(phases)


def output_view(output: Output | None, request_id: str) -> dict[str, Any] | None:
    """Show an output: choices, vectors, or where the media file lies."""
    if isinstance(output, TextOutput):
        return {
            "choices": [
                {
                    "index": index,
                    "text": choice.text,
                    "finish_reason": choice.finish_reason,
                    "reasoning": choice.reasoning,
                    "tool_calls": [
                        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in choice.tool_calls
                    ]
                    if choice.tool_calls
                    else None,
                    "logprobs": chat_logprobs(choice.logprobs)["content"] if choice.logprobs is not None else None,
                }
                for index, choice in enumerate(output.choices)
            ]
        }
    if isinstance(output, VectorOutput):
        unpacked = [list(struct.unpack(f"<{output.dimensions}f", vector)) for vector in output.vectors]
        return {"dimensions": output.dimensions, "embeddings": unpacked}
    if isinstance(output, MediaOutput):
        url = urls(request_id, media=True)["output"]
        return {"media": [{"url": url, "media_type": output.media_type, "size_bytes": output.size_bytes}]}
    return None


def accepted_view(view: View) -> dict[str, Any]:
    """Show a request that has just been accepted."""
    return {
        "id": view.id,
        "status": view.status,
        "model": view.model,
        "position": view.position,
        "eta": view.eta_s,
        "hold_nanos": view.hold_nanos,
        "price_version": view.price_version,
        "urls": urls(view.id),
    }


def answer_view(answer: Answer) -> dict[str, Any]:
    """Show a request whose caller waited for it."""
    return {
        "id": answer.id,
        "status": answer.outcome,
        "model": answer.model,
        "output": output_view(answer.output, answer.id),
        "usage": _units(answer.units) | money_fields(answer),
        "charge_nanos": answer.charge_nanos,
        "hold_nanos": answer.hold_nanos,
        "price_version": answer.price_version,
        "phases_us": _phases(answer.phases),
        "attempt": answer.attempt,
        "urls": urls(answer.id, isinstance(answer.output, MediaOutput)),
    }


def request_view(view: View) -> dict[str, Any]:
    """Show a request as it stands, open or ended."""
    shown: dict[str, Any] = {
        "id": view.id,
        "status": view.status,
        "model": view.model,
        "task": view.task,
        "created_at": _instant(view.created_us),
        "deadline_at": _instant(view.deadline_us),
        "finished_at": _instant(view.finished_us),
        "hold_nanos": view.hold_nanos,
        "price_version": view.price_version,
        "metadata": view.metadata,
        "urls": urls(view.id, isinstance(view.output, MediaOutput)),
    }
    if view.finished_us is None:
        return shown | {"position": view.position, "eta": view.eta_s, "attempt": view.attempt}
    error = None
    if view.status != "succeeded" and view.reason is not None:
        told = failure(view.id, view.reason, view.detail)
        error = {"code": told.code, "message": told.message}
    return shown | {
        "reason": view.reason,
        "attempt": view.attempt,
        "charge_nanos": view.charge_nanos,
        "cost": msgspec.Raw(usd_text(view.charge_nanos).encode()),
        "usage": _units(view.units),
        "phases_us": _phases(view.phases),
        "output": output_view(view.output, view.id),
        "error": error,
    }
