"""How the request queue shows requests and models: keys in the order of the live service, times in Unix seconds."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from gateway.catalog.discovery import AVAILABLE, availability
from gateway.catalog.model import Model
from gateway.contract.events import GalleryOutput, MediaOutput, Output, TextOutput, asked_for, media_of
from gateway.contract.pools import WorkerStatus
from gateway.contract.states import Status
from gateway.flow.respond import failure
from gateway.flow.view import View
from gateway.http.asked import asked_of
from gateway.http.native.output_views import output_view
from gateway.ledger.keyring import Caller
from gateway.media.addresses import Addresses
from gateway.money import usd_text

STATUSES: dict[Status, str] = {
    "queued": "queued",
    "running": "processing",
    "succeeded": "success",
    "failed": "failed",
    "cancelled": "cancelled",
    "expired": "failed",
}


def submitted_view(view: View) -> dict[str, Any]:
    """Show a request that has just been accepted."""
    created_s = view.created_us // 1_000_000
    return {
        "request_id": view.id,
        "model": view.model,
        "status": STATUSES[view.status],
        "created_at": created_s,
        "updated_at": created_s,
        "queued_at": created_s,
        "hold_nanos": view.hold_nanos,
        "price_version": view.price_version,
    }


def record_view(view: View, caller: Caller, addresses: Addresses) -> dict[str, Any]:
    """Show a request as it stands, with what it cost once it has ended."""
    created_s = view.created_us // 1_000_000
    shown: dict[str, Any] = {
        "request_id": view.id,
        "org_id": str(caller.account_id),
        "user_id": str(caller.key_id),
        "model": view.model,
        "status": STATUSES[view.status],
        "is_public": False,
        "payload": asked_of(view),
        "outcome": None,
        "created_at": created_s,
        "updated_at": created_s if view.finished_us is None else view.finished_us // 1_000_000,
        "queued_at": created_s,
        "qworker_id": view.worker,
        "price_version": view.price_version,
        "hold_nanos": view.hold_nanos,
    }
    if view.finished_us is None:
        return shown | {"position": view.position, "progress": view.progress}
    shown["charge_nanos"] = view.charge_nanos
    shown["cost"] = msgspec.Raw(usd_text(view.charge_nanos).encode())
    if view.status == "succeeded":
        shown["outcome"] = outcome_of(view.output, addresses)
    elif view.reason is not None:
        said = failure(view.id, view.reason, view.detail).message
        shown |= {"outcome": {"error": said}, "error": said}
    return shown


def outcome_of(output: Output | None, addresses: Addresses) -> dict[str, Any] | None:
    """Show an output by its modality; what the queue has no shape for, as the native family shows it."""
    if not isinstance(output, MediaOutput | GalleryOutput):
        shown = output_view(output, addresses)
        if isinstance(output, TextOutput) and shown is not None:
            shown["text"] = output.choices[0].text if output.choices else ""
        return shown
    items = [(item, address) for item in asked_for(output) if (address := addresses.of_output(item))]
    outcome: dict[str, Any] = {"media_urls": [{"id": str(at), "url": url} for at, (_, url) in enumerate(items)]}
    small = next((addresses.of_output(item) for item in media_of(output) if item.role == "thumbnail"), None)
    if items:
        first, address = items[0]
        outcome |= _MODALITIES.get(first.media_type.partition("/")[0], _other)(first, address)
    return outcome | ({"thumbnail_image_url": small} if small else {})


def _other(_: MediaOutput, address: str) -> dict[str, Any]:
    return {"url": address}


def _picture(_: MediaOutput, address: str) -> dict[str, Any]:
    return {"thumbnail_image_url": address}


def _film(item: MediaOutput, address: str) -> dict[str, Any]:
    return {"video_url": address, "duration_ms": item.duration_ms}


def _sound(item: MediaOutput, address: str) -> dict[str, Any]:
    return {"audio_url": address, "duration_ms": item.duration_ms}


_MODALITIES: dict[str, Callable[[MediaOutput, str], dict[str, Any]]] = {
    "image": _picture,
    "video": _film,
    "audio": _sound,
}


def model_view(model: Model, workers: Sequence[WorkerStatus], account_id: int, whole: bool) -> dict[str, Any]:
    """Show a model. `whole`: with the price as the vendor's package can read it, which knows whole numbers alone."""
    stands = availability(model, workers)
    since_s = int(model.price.valid_from.timestamp()) if model.price else 0
    return {
        "model": model.name,
        "display_name": model.name,
        "org_id": str(account_id),
        "model_type": model.tasks[0],
        "brief_description": model.description,
        "detailed_description": " ".join(pick.line for pick in model.picks) or model.description,
        "parameters": [{"name": name} | _told(parameter) for name, parameter in model.parameters.items()],
        "modalities": {"tasks": list(model.tasks)},
        "price_info": _price(model, whole),
        "tags": list(model.tasks),
        "icon_link": "",
        "background_image_url": "",
        "host_type": "external" if all(route.upstream for route in model.routes) else "internal",
        "external_provider": next((route.upstream for route in model.routes if route.upstream), ""),
        "external_api_endpoint": "",
        "external_api_url": "",
        "internal_parameters": {},
        "qworkers": len(workers),
        "available": stands.state in AVAILABLE,
        "reason": stands.reason,
        "created_at": since_s,
        "updated_at": since_s,
    }


def _price(model: Model, whole: bool) -> dict[str, Any] | None:
    """Show the first component of a price, exactly as `usd`, and `price` as a number."""
    if model.price is None or not model.price.components:
        return None
    first = model.price.components[0]
    usd = Decimal(first.usd)
    price: int | msgspec.Raw | None = int(usd) if usd == usd.to_integral_value() else None
    if price is None and not whole:
        price = msgspec.Raw(f"{usd:f}".encode())
    return {"price": price, "pricing_type": first.unit, "unit": "USD", "usd": first.usd}


def _told(parameter: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(parameter)
    return {name: value for name, value in plain.items() if value not in (None, "", ())}
