"""Which of several models `auto` runs, and why."""

import math

import msgspec

from gateway.errors import FaregateError, Unavailable
from gateway.flow.call import CHOICE_NOTE
from gateway.flow.quote import Quoted
from gateway.flow.wish import Sort, UnitLimits, Wish
from gateway.money import usd_text
from gateway.pricing.quote import Quote
from gateway.pricing.rows import rows_for
from gateway.routing.backlog import Backlog
from gateway.routing.choice import Routes

MOST_FALLBACKS = 3
"""The next best models, which it may fall back on."""

_WHY: dict[Sort, str] = {
    "price": "the lowest ceiling for this input",
    "latency": "the shortest time to an answer of late",
    "throughput": "the most tokens or answers a second of late",
}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What `auto` chose and why, as the caller is told."""

    model: str
    sort: Sort
    reason: str
    ceiling_usd: str
    candidates: int
    """The models that do the task, take the input, stay within the limits, and can be run now."""
    fallbacks: list[str]


def chosen(routes: Routes, backlog: Backlog, quoted: list[Quoted], wish: Wish) -> Quoted:
    """Choose the best of the models that can be run now; the next few are its fallbacks.

    Raises the first one's error where none can.
    """
    ready: list[Quoted] = []
    refusal: FaregateError | None = None
    for each in quoted:
        error = unready(routes, backlog, each)
        refusal = refusal or error
        if error is None:
            ready.append(each)
    if not ready:
        raise refusal or Unavailable("No model can be run now.", code="no_route", param="model")
    sort: Sort = wish.sort or "price"
    ready.sort(key=lambda each: (_badness(routes, each, sort), each.quote.nanos, each.resolved.model.name))
    kept = ready[: 1 + (MOST_FALLBACKS if wish.allow_fallbacks else 0)]
    return _noted(kept, sort, len(ready))


def unready(routes: Routes, backlog: Backlog, quoted: Quoted) -> FaregateError | None:
    """Say why a model cannot be run at once; None where it can."""
    model, narrowing = quoted.resolved.model, quoted.narrowing
    lanes = routes.lanes(model) if narrowing is None else routes.narrowed(model, narrowing)
    if lanes.error is not None:
        return lanes.error()
    left = [lane for tier in lanes.tiers for lane in tier]
    if all(lane.stand == "idle" for lane in left):
        return Unavailable("No worker serves a model of this task at the moment.", code="no_route", param="model")
    full = [lane.pool for lane in left if backlog.full(lane.pool)]
    return backlog.refusal(full[0]) if len(full) == len(left) else None


def _badness(routes: Routes, quoted: Quoted, sort: Sort) -> float:
    """Measure what is sorted by, the smaller the better; infinity where there is no history."""
    model = quoted.resolved.model
    if sort == "latency":
        return routes.soonest_s(model)
    if sort == "throughput":
        return -routes.throughput(model) or math.inf
    return 0.0  # the ceilings decide


def _noted(kept: list[Quoted], sort: Sort, candidates: int) -> Quoted:
    """Put the choice among the notes of the call, from where every view of the request can tell it."""
    first = kept[0]
    choice = Choice(
        model=first.resolved.model.name,
        sort=sort,
        reason=f"{_WHY[sort]}, of {candidates} that can be run now",
        ceiling_usd=usd_text(first.quote.nanos),
        candidates=candidates,
        fallbacks=[each.resolved.model.name for each in kept[1:]],
    )
    note = {CHOICE_NOTE: msgspec.json.encode(choice).decode()}
    told = []
    for each in kept:
        call = msgspec.structs.replace(each.resolved.call, notes=each.resolved.call.notes | note)
        told.append(msgspec.structs.replace(each, resolved=msgspec.structs.replace(each.resolved, call=call)))
    return msgspec.structs.replace(told[0], others=tuple(told[1:]))


def fitting_prices(quote: Quote, limits: UnitLimits) -> bool:
    """Say whether no price of a unit that counts for the request is above its limit, before any discount."""
    for component in rows_for(quote.price.components, quote.terms.traits):
        limit = getattr(limits, component.unit, None)
        if limit is not None and component.picos > limit:
            return False
    return True
