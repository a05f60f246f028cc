"""What every answer carries, whatever its family: request id, charge, price version, and where the time went."""

from typing import Any

import msgspec

from gateway.contract.phases import PHASE_NAMES, Phases
from gateway.flow.respond import Answer
from gateway.flow.way import Placed
from gateway.http.errors import Headers
from gateway.money import usd_text

_PHASES = [(name, name + "_us") for name in PHASE_NAMES]


def server_timing(phases: Phases, total_us: int) -> str:
    """Write the phases as a `Server-Timing` header (W3C Server Timing), in milliseconds."""
    parts = [f"{name};dur={spent / 1000:.3f}" for name, field in _PHASES if (spent := getattr(phases, field))]
    parts.append(f"total;dur={total_us / 1000:.3f}")
    return ", ".join(parts)


def answer_headers(answer: Answer) -> Headers:
    """Give the headers of a finished request."""
    return [
        (b"x-request-id", answer.id.encode()),
        (b"x-faregate-charge-nanos", str(answer.charge_nanos).encode()),
        (b"x-faregate-cost", usd_text(answer.charge_nanos).encode()),
        (b"x-faregate-price-version", str(answer.price_version).encode()),
        (b"server-timing", server_timing(answer.phases, answer.total_us).encode()),
    ]


def stream_headers(placed: Placed) -> Headers:
    """Give the headers of a stream: its charge is not known yet, its hold is."""
    quoted = placed.enqueued.admitted.routed.quoted
    return [
        (b"x-request-id", placed.id.encode()),
        (b"x-faregate-hold-nanos", str(quoted.quote.nanos).encode()),
        (b"x-faregate-price-version", str(quoted.resolved.price.id).encode()),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]


def money_fields(answer: Answer) -> dict[str, Any]:
    """Give the charge as the fields that stand in every `usage`: an exact JSON number of US dollars, and nanos."""
    return {
        "cost": msgspec.Raw(usd_text(answer.charge_nanos).encode()),
        "charge_nanos": answer.charge_nanos,
        "price_version": answer.price_version,
    }
