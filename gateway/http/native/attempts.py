"""How the native family shows where the time of a request went, and by whom it was executed."""

from typing import Any

from gateway.contract.phases import PHASE_NAMES, Phases
from gateway.contract.units import UNIT_NAMES, Units
from gateway.flow.view import View
from gateway.ledger.steps import RatedStep

_PHASES = [(name, name + "_us") for name in PHASE_NAMES]


def phases_ms(phases: Phases) -> dict[str, float]:
    """Show every phase in milliseconds."""
    return {name: getattr(phases, field) / 1000 for name, field in _PHASES}


def counted(units: Units) -> dict[str, int]:
    """Show what was measured, and nothing that was not."""
    return {name: count for name in UNIT_NAMES if (count := getattr(units, name))}


def attempts_of(view: View) -> list[dict[str, Any]]:
    """Show the executions of a finished request, in order: what it ran or tried, and the one that ended it.

    Each with its own cost; the caller pays the charge of the request, once.
    """
    tried = [_step(rated) for rated in view.steps]
    if not view.worker or (view.steps and _holds_the_end(view)):
        return tried
    return [
        *tried,
        {
            "model": view.model,
            "worker": view.worker,
            "attempt": view.attempt,
            "outcome": view.status,
            "reason": view.reason,
            "phases_ms": phases_ms(view.phases),
            "usage": counted(view.units),
            "cost_nanos": view.charge_nanos,
        },
    ]


def _holds_the_end(view: View) -> bool:
    """Say whether the steps tell the last attempt too: those of a workflow do, and the calls of its upstreams."""
    last = view.steps[-1].step
    return bool(last.name) and (not last.upstream or last.worker == view.worker)


def _step(rated: RatedStep) -> dict[str, Any]:
    step = rated.step
    who: dict[str, Any] = {"step": step.name} if step.name and not step.upstream else {}
    if step.upstream:
        who = {"upstream": step.name, "estimated": step.estimated}
    return who | {
        "model": step.model,
        "pool": step.pool,
        "worker": step.worker,
        "attempt": step.attempt,
        "outcome": step.outcome,
        "reason": step.reason,
        "phases_ms": phases_ms(step.phases),
        "usage": counted(step.units),
        "cost_nanos": rated.cost_nanos,
    }
