"""Between route and admit, where a caller set a deadline: one that cannot be met is refused before anything is held."""

import asyncio

from gateway.errors import Unprocessable
from gateway.flow.call import WEIGHTS
from gateway.flow.enqueue import expected_work
from gateway.flow.route import Routed
from gateway.queues.port import GatewaySide, QueueUnavailable
from gateway.routing.estimate import Estimates


async def reach(estimates: Estimates, queue: GatewaySide, routed: Routed) -> None:
    """Hold a call's own deadline against the estimate for its place in the fair queue.

    Raises Unprocessable where as likely as not it would be late. Without history, workers or queue nothing is refused.
    """
    resolved = routed.quoted.resolved
    call, model, pool = resolved.call, resolved.model.name, routed.pool.name
    if call.deadline_s is None or estimates.of(pool, model) is None:
        return
    cost = expected_work(routed.quoted.quote.units) / WEIGHTS[call.priority]
    try:
        ahead, depth = await asyncio.gather(queue.place(resolved.caller.account_id, cost), queue.depth())
    except QueueUnavailable:
        return
    eta = estimates.eta(pool, model, ahead, depth.leased)
    if eta is not None and eta.finish.p50 > call.deadline_s:
        raise Unprocessable(
            f"It would finish in about {eta.finish.p50:.0f} s (nine times of ten within {eta.finish.p90:.0f} s), after "
            f"your deadline of {call.deadline_s} s. Give it more time, or another model.",
            code="deadline_unreachable",
            param="deadline_s",
        )
