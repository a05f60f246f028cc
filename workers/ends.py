"""The terminal event of an attempt, or what it comes to where another pool goes on: made from what its run measured."""

import time

import msgspec

from gateway.contract.events import Ended, Output, Step
from gateway.contract.phases import Phases
from gateway.contract.request import Request
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from gateway.queues.moves import next_leg
from gateway.queues.port import Move, Taken
from workers.engine import EngineError, EngineLost, RefusedInput, Run
from workers.outputs import OutputNotStored


class Place(msgspec.Struct, frozen=True):
    """Where attempts are made: by which worker, in which pool."""

    worker: str
    pool: str


def queue_us(taken: Taken) -> int:
    """Give the microseconds a request waited; two clocks are compared, so never less than 0."""
    return max(0, taken.taken_us - taken.request.enqueued_us)


def end_of(
    run: Run, place: Place, outcome: Outcome, reason: Reason, *, output: Output | None = None, detail: str = ""
) -> Ended:
    """Make the end of a run; units and phases stand as the engine left them."""
    request = run.request
    return Ended(
        request.id,
        run.attempt,
        outcome,
        reason,
        run.units,
        run.phases,
        request.price,
        place.worker,
        request.reply,
        output,
        detail,
        run.forward_began,
        [*request.steps, *run.steps] if request.steps else run.steps,
        request.parent,
        place.pool if request.steps else "",
        run.gpu_us,
    )


def end_unbegun(taken: Taken, place: Place, outcome: Outcome, reason: Reason, detail: str = "") -> Ended:
    """Make the end of a request that never reached the engine: it measured nothing but its wait."""
    request = taken.request
    return Ended(
        request.id,
        taken.attempt,
        outcome,
        reason,
        Units(),
        Phases(queue_us=queue_us(taken)),
        request.price,
        place.worker,
        request.reply,
        detail=detail,
        steps=request.steps,
        parent=request.parent,
        pool=place.pool if request.steps else "",
    )


def onward(request: Request, end: Ended, pool: str) -> Move:
    """Make of the end of a failed attempt what its request is in its next leg.

    What was tried is told by the engine, upstream by upstream; else the attempt itself is what was tried.
    """
    tried = end.steps[len(request.steps) :] or [
        Step(
            "",
            request.model,
            "",
            pool,
            end.worker,
            end.attempt,
            end.outcome,
            end.reason,
            end.units,
            end.phases,
            detail=end.detail,
            gpu_us=end.gpu_us,
        )
    ]
    return Move(next_leg(request, tried, time.time_ns() // 1000), request.legs[0].pool, end.attempt)


def is_final(error: BaseException) -> bool:
    """Say whether a failure ends the request even where other ways are left: none of them could do better.

    What an upstream may have been paid for already is not bought again; and output that could not be stored is there.
    """
    if isinstance(error, EngineError):
        return error.final or error.reason == "upstream_unknown"
    return isinstance(error, RefusedInput | OutputNotStored)


def is_expected(error: BaseException) -> bool:
    """Say whether an error is one that engines are to raise; any other is a fault in the code."""
    return isinstance(error, RefusedInput | EngineError | EngineLost | OutputNotStored)


def reason_of(error: BaseException) -> tuple[Reason, str]:
    """Give the reason and the words for the caller; an unexpected error's own words stay in the log."""
    if isinstance(error, RefusedInput):
        return "refused_by_engine", str(error)
    if isinstance(error, EngineLost):
        return "engine_lost", ""
    if isinstance(error, OutputNotStored):
        return "engine_error", "The output could not be stored; try again later."
    return (error.reason, str(error)) if isinstance(error, EngineError) else ("engine_error", "")
