"""How a request ended, as settlement takes it; and what is done with an end that Postgres cannot store."""

import msgspec

from gateway.contract.events import Step
from gateway.contract.phases import Phases
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from gateway.ledger.steps import RatedStep

MOST_COUNT = 2**53
"""The most of any unit or phase that is believed; four centuries in microseconds."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a request ended, rated."""

    id: str
    charge_nanos: int
    """What the units cost at `price_version_id`; it is capped at the hold."""
    price_version_id: int
    outcome: Outcome
    reason: Reason
    attempt: int
    worker: str
    units: Units
    phases: Phases
    forward_began: bool = False
    """Whether the engine had begun: what a cancelled per-request price depends on."""
    output: bytes | None = None
    """Kept where the request was admitted with `keep`."""
    detail: str = ""
    """What a caller may read about a failure; kept likewise."""
    steps: tuple[RatedStep, ...] = ()
    """What was tried and run inside it; charged to nobody."""
    pool: str = ""
    """Where it ended, if it was handed on from the pool that it was admitted to."""
    model_id: int | None = None
    """The model that it then was."""
    terms: str | None = None
    """What the charge depended on beside units and price version, as JSON; None for nothing."""
    cost_nanos: int | None = None
    """What it cost the operator; None where nobody knows."""
    gpu_us: int = 0
    """Its share of the time of the worker that ran it."""
    route: str = ""
    """The upstream that served it, else the pool."""


def mended(ending: Ending) -> Ending:
    """Make the figures and words of an end storable: counts within a bigint, texts without NUL or half characters."""
    return msgspec.structs.replace(
        ending,
        attempt=_attempt(ending.attempt),
        charge_nanos=max(0, min(ending.charge_nanos, 2**63 - 1)),
        worker=_storable(ending.worker),
        detail=_storable(ending.detail),
        pool=_storable(ending.pool),
        route=_storable(ending.route),
        gpu_us=_believable(ending.gpu_us),
        cost_nanos=_nanos(ending.cost_nanos),
        units=_units(ending.units),
        phases=_phases(ending.phases),
        steps=tuple(RatedStep(_step(rated.step), _nanos(rated.cost_nanos)) for rated in ending.steps),
    )


def _step(step: Step) -> Step:
    return msgspec.structs.replace(
        step,
        name=_storable(step.name),
        model=_storable(step.model),
        request=_storable(step.request),
        pool=_storable(step.pool),
        worker=_storable(step.worker),
        detail=_storable(step.detail),
        attempt=_attempt(step.attempt),
        units=_units(step.units),
        phases=_phases(step.phases),
    )


def _nanos(cost: int | None) -> int | None:
    return None if cost is None else max(0, min(cost, 2**63 - 1))


def _attempt(number: int) -> int:
    return max(0, min(number, 2**15 - 1))


def _believable(count: int) -> int:
    return max(0, min(count, MOST_COUNT))


def _units(units: Units) -> Units:
    return Units(*map(_believable, msgspec.structs.astuple(units)))


def _phases(phases: Phases) -> Phases:
    return Phases(*map(_believable, msgspec.structs.astuple(phases)))


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
