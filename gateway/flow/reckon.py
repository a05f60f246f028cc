"""What an ended request is charged, and what it cost: the figures that settlement writes down."""

from gateway.catalog.model import Snapshot
from gateway.contract.events import Ended, Step, encode_output
from gateway.ledger.endings import Ending
from gateway.ledger.steps import RatedStep
from gateway.money import ATTOS_PER_PICO, round_attos
from gateway.pricing.conditions import Traits
from gateway.pricing.price import PriceVersion
from gateway.pricing.rate import WHOLE_HOLD, charge_nanos, cost_nanos, depends, rate_nanos
from gateway.pricing.rows import NotSold
from gateway.pricing.terms import read_terms

US_PER_HOUR = 3_600_000_000


def reckoned(snapshot: Snapshot, end: Ended, pool: str, price_id: int, terms: str | None = None) -> Ending:
    """Rate an end at a price version, under the terms of its admission.

    `pool` is where it ended, unless it says so itself. Raises KeyError for a version that is not known: never zero
    for want of a price.
    """
    price = snapshot.prices[price_id]
    traits = read_terms(terms).traits_at(price_id) if terms and end.steps else {}
    steps = tuple([_rated_step(snapshot, step, traits) for step in end.steps]) if end.steps else ()
    ran_in = end.pool or pool
    return Ending(
        id=end.id,
        charge_nanos=_charge(price, end, terms),
        price_version_id=price_id,
        outcome=end.outcome,
        reason=end.reason,
        attempt=end.attempt,
        worker=end.worker,
        units=end.units,
        phases=end.phases,
        forward_began=end.forward_began,
        output=encode_output(end.output) if end.output is not None else None,
        detail=end.detail,
        steps=steps,
        pool=end.pool,
        model_id=price.model_id,
        terms=terms,
        cost_nanos=_cost(snapshot, end, ran_in, steps),
        gpu_us=end.gpu_us + sum([step.gpu_us for step in end.steps]) if end.steps else end.gpu_us,
        route=_route(end, ran_in),
    )


def _charge(price: PriceVersion, end: Ended, terms: str | None) -> int:
    """Rate an end. What no row covers costs all that was held: admission refuses it, so that this is only so
    where the request was settled before and its terms are gone; then nobody is charged again.
    """
    try:
        return charge_nanos(price, end.units, end.outcome, price.outcome, end.forward_began, read_terms(terms))
    except NotSold:
        return WHOLE_HOLD


def _route(end: Ended, pool: str) -> str:
    """Name what served a request: the upstream that was called last, else the pool."""
    last = end.steps[-1] if end.steps else None
    return last.name if last is not None and last.upstream and last.pool == pool else pool


def _cost(snapshot: Snapshot, end: Ended, pool: str, steps: tuple[RatedStep, ...]) -> int | None:
    """Sum what a request cost the operator: time on workers, and calls of upstreams. None where a part is not known."""
    total = _time_cost(snapshot, pool, end.gpu_us)
    for rated in steps:
        part = rated.cost_nanos if rated.step.upstream else _time_cost(snapshot, rated.step.pool, rated.step.gpu_us)
        if rated.step.upstream and part is None and not _bought(rated.step):
            part = 0
        total = None if total is None or part is None else total + part
    return total


def _time_cost(snapshot: Snapshot, pool: str, gpu_us: int) -> int | None:
    known = snapshot.pools.get(pool)
    if known is not None and known.cost_picos_per_hour is not None:
        return round_attos(known.cost_picos_per_hour * ATTOS_PER_PICO * gpu_us, US_PER_HOUR)
    if gpu_us == 0 or (known is not None and known.engine in ("upstream", "workflow")):
        return 0
    return None


def _rated_step(snapshot: Snapshot, step: Step, traits: Traits) -> RatedStep:
    """Say what an attempt inside a request cost; it is charged to nobody.

    An upstream may say so itself, else its route's cost counts. A workflow's step costs what its model does now.
    """
    if step.upstream:
        if step.cost_nanos is not None:
            return RatedStep(step, step.cost_nanos)
        cost = snapshot.costs.get((step.name, step.model))
        try:
            nanos = cost_nanos(cost, step.units, requests=_bought(step), traits=traits) if cost else None
        except NotSold:
            nanos = None
        return RatedStep(step, nanos)
    if not step.name:
        return RatedStep(step, None)
    model = snapshot.models.get(step.model)
    if model is None or model.price is None or depends(model.price):
        return RatedStep(step, None)  # nobody kept what the step asked for
    return RatedStep(step, rate_nanos(model.price, step.units, requests=_bought(step)))


def _bought(step: Step) -> int:
    return 1 if step.outcome == "succeeded" or step.phases.forward_us > 0 else 0
