"""What every answer carries, whatever its family: request id, charge, price version, and where the time went."""

from typing import Any

import msgspec
from msgspec.structs import astuple

from gateway.contract.phases import PHASE_NAMES, Phases
from gateway.flow.call import CHOICE_NOTE
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.errors import Headers
from gateway.money import usd_text


def server_timing(phases: Phases, total_us: int) -> str:
    """Write the phases as a `Server-Timing` header (W3C Server Timing), in milliseconds."""
    spent = zip(PHASE_NAMES, astuple(phases), strict=True)
    parts = [f"{name};dur={us / 1000:.3f}" for name, us in spent if us]
    parts.append(f"total;dur={total_us / 1000:.3f}")
    return ", ".join(parts)


def answer_headers(answer: Answer) -> Headers:
    """Give the headers of a finished request."""
    headers = [
        (b"x-request-id", answer.id.encode()),
        (b"x-faregate-model", answer.model.encode()),
        (b"x-faregate-charge-nanos", str(answer.charge_nanos).encode()),
        (b"x-faregate-cost", usd_text(answer.charge_nanos).encode()),
        (b"x-faregate-price-version", str(answer.price_version).encode()),
        (b"server-timing", server_timing(answer.phases, answer.total_us).encode()),
    ]
    if answer.choice:
        headers.append((b"x-faregate-choice", answer.choice.encode()))
    return headers


def stream_headers(placed: Placed) -> Headers:
    """Give the headers of a stream: its charge is not known yet, nor which of several models will answer."""
    routed = placed.enqueued.admitted.routed
    headers = [
        (b"x-request-id", placed.id.encode()),
        (b"x-faregate-hold-nanos", str(routed.hold_nanos).encode()),
        (b"x-faregate-price-version", str(routed.quoted.resolved.price.id).encode()),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
    resolved = routed.quoted.resolved
    if not routed.alternatives:
        headers.append((b"x-faregate-model", resolved.model.name.encode()))
    if resolved.call.notes and CHOICE_NOTE in resolved.call.notes:
        headers.append((b"x-faregate-choice", resolved.call.notes[CHOICE_NOTE].encode()))
    return headers


def money_fields(answer: Answer) -> dict[str, Any]:
    """Give the charge as the fields that stand in every `usage`: an exact JSON number of US dollars, and nanos."""
    return {
        "cost": msgspec.Raw(usd_text(answer.charge_nanos).encode()),
        "charge_nanos": answer.charge_nanos,
        "price_version": answer.price_version,
    }
