"""What was tried and run inside a request, each an attempt: written with the settlement, read by its owner."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.contract.events import Step
from gateway.contract.phases import Phases
from gateway.contract.states import OUTCOMES, REASONS
from gateway.contract.units import UNIT_NAMES, Units
from gateway.db.attempts import attempt
from gateway.db.usage import PHASE_COLUMNS

_OUTCOME_NUMBERS = {outcome: number for number, outcome in enumerate(OUTCOMES)}
_REASON_NUMBERS = {reason: number for number, reason in enumerate(REASONS)}


class RatedStep(msgspec.Struct, frozen=True):
    """An attempt inside a request, and its cost: as its upstream says, or its units at a price; None for unknown."""

    step: Step
    cost_nanos: int | None


def attempt_rows(n: int, steps: Sequence[RatedStep]) -> list[tuple[Any, ...]]:
    """Give the rows of the type `attempt_row` in types.sql; `n` is the position of their request in its batch."""
    return [
        (
            n,
            number,
            step.name,
            step.model,
            step.request,
            step.pool,
            step.worker,
            step.attempt,
            _OUTCOME_NUMBERS[step.outcome],
            _REASON_NUMBERS[step.reason],
            rated.cost_nanos,
            *msgspec.structs.astuple(step.units),
            *msgspec.structs.astuple(step.phases),
            step.upstream,
            step.estimated,
            step.detail,
            step.gpu_us,
        )
        for number, rated in enumerate(steps, 1)
        for step in (rated.step,)
    ]


async def steps_of(connection: AsyncConnection, request_id: UUID) -> tuple[RatedStep, ...]:
    """Read the attempts inside a finished request in the order of their ends; none where it was one attempt of our own.

    Whose request it is must have been checked: nothing here says so.
    """
    query = select(attempt).where(attempt.c.request_id == request_id).order_by(attempt.c.number)
    return tuple(_rated(row) for row in await connection.execute(query))


def _rated(row: Any) -> RatedStep:
    step = Step(
        name=row.name,
        model=row.model,
        request=row.step_id,
        pool=row.pool,
        worker=row.worker,
        attempt=row.attempt,
        outcome=OUTCOMES[row.outcome],
        reason=REASONS[row.reason],
        units=Units(*(getattr(row, name) for name in UNIT_NAMES)),
        phases=Phases(*(getattr(row, name) for name in PHASE_COLUMNS)),
        upstream=row.upstream,
        estimated=row.estimated,
        detail=row.detail,
        gpu_us=row.gpu_us,
    )
    return RatedStep(step, row.cost_nanos)
