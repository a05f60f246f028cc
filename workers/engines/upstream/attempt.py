"""One attempt at one target, and what is recorded of it: units, phases, cost, and why it failed."""

import time
from collections.abc import Awaitable, Callable

import msgspec

from gateway.contract.events import Output, Step
from gateway.contract.phases import PHASE_NAMES, Phases
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from workers.engine import EngineError, RefusedInput, Run
from workers.engines.upstream.counting import count_media
from workers.engines.upstream.failures import UpstreamFailed, clean
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.provider import Provider

Make = Callable[[Call], Awaitable[Output]]

_INSIDE = ("transfer_us", "preprocess_us", "postprocess_us")
"""Phases that are counted while an attempt runs; the rest of its time is the upstream's work."""


async def attempt(call: Call, provider: Provider, make: Make, worker: str, *, resumed: bool = False) -> Output:
    """Make one call, tell the upstream's health how it went, and record it. Raises what `make` raises.

    A job that is `resumed` is no trial of a breaker: it was taken before.
    """
    run = call.run
    run.units = Units()
    began_us = [getattr(run.phases, f"{name}_us") for name in PHASE_NAMES]
    began = time.perf_counter_ns()
    trial = provider.begin(call.target)
    if resumed:
        trial.left()
    call.taken = trial.answered
    outcome: Outcome = "failed"
    reason: Reason = "engine_error"
    detail = ""
    try:
        output = await make(call)
        count_media(run, output)
    except UpstreamFailed as error:
        reason, detail = error.reason, error.detail or str(error)
        trial.failed(error)
        raise
    except (RefusedInput, EngineError) as error:
        reason = error.reason if isinstance(error, EngineError) else "refused_by_engine"
        detail = str(error)
        trial.answered()
        raise
    except BaseException:
        outcome, reason = _stopped(run)
        trial.left()
        raise
    else:
        outcome, reason = "succeeded", "done"
        trial.succeeded((time.perf_counter_ns() - began) / 1e9)
        return output
    finally:
        phases = _phases(run, began_us, (time.perf_counter_ns() - began) // 1000)
        if run.stopped not in ("lost", "given_back"):
            run.steps.append(_step(call, worker, outcome, reason, phases, detail))


def _phases(run: Run, before: list[int], took_us: int) -> Phases:
    """Give what this attempt took, and add the time of the upstream's own work to the run."""
    now = run.phases
    mine = Phases(*(getattr(now, f"{name}_us") - us for name, us in zip(PHASE_NAMES, before, strict=True)))
    mine.forward_us = max(0, took_us - sum(getattr(mine, name) for name in _INSIDE))
    now.forward_us += mine.forward_us
    return mine


def _stopped(run: Run) -> tuple[Outcome, Reason]:
    why = run.stopped
    if why == "" or why == "lost" or why == "given_back" or why == "engine_lost":
        return "failed", "engine_error"
    return ("expired" if why == "deadline" else "cancelled"), why


def _step(call: Call, worker: str, outcome: Outcome, reason: Reason, phases: Phases, detail: str) -> Step:
    run = call.run
    return Step(
        call.target.upstream,
        call.target.model,
        call.job,
        call.pool,
        worker,
        run.attempt,
        outcome,
        reason,
        msgspec.structs.replace(run.units),
        phases,
        upstream=True,
        cost_nanos=call.cost_nanos,
        estimated=call.estimated,
        detail=clean(detail),
    )
