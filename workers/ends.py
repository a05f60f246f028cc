"""The terminal event of an attempt: made from what its run measured."""

from gateway.contract.events import Ended, Output
from gateway.contract.phases import Phases
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from gateway.queues.port import Taken
from workers.engine import EngineError, EngineLost, RefusedInput, Run
from workers.outputs import OutputNotStored


def queue_us(taken: Taken) -> int:
    """Give the microseconds a request waited; two clocks are compared, so never less than 0."""
    return max(0, taken.taken_us - taken.request.enqueued_us)


def end_of(
    run: Run, worker: str, outcome: Outcome, reason: Reason, *, output: Output | None = None, detail: str = ""
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
        worker,
        request.reply,
        output,
        detail,
        run.forward_began,
    )


def end_unbegun(taken: Taken, worker: str, outcome: Outcome, reason: Reason, detail: str = "") -> Ended:
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
        worker,
        request.reply,
        detail=detail,
    )


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
    return "engine_error", str(error) if isinstance(error, EngineError) else ""
