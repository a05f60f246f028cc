"""Steps 2 and 3 where a caller leaves a choice: fallback models, `auto`, and wishes about ways.

Each model that may answer is resolved and quoted by itself, with its own parameters, defaults and price. One that
cannot take the input, is not for sale, or costs more than the caller will pay is passed over; where none is left, the
first one's error is the caller's.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.errors import (
    FaregateError,
    Forbidden,
    InvalidRequest,
    NotFound,
    PaymentRequired,
    Unavailable,
    Unprocessable,
)
from gateway.flow.authenticate import Authentic
from gateway.flow.pick import chosen, fitting_prices
from gateway.flow.quote import Quoted, priced, too_dear
from gateway.flow.resolve import Resolved, resolve
from gateway.flow.rivals import Readings, Serves, resolve_as, sold_for, staged_like
from gateway.flow.stage import Staged
from gateway.flow.wish import AUTO, MOST_MODELS, Wish
from gateway.routing.backlog import Backlog
from gateway.routing.choice import Routes
from gateway.routing.narrow import Narrowing

Stage = Callable[[Resolved], Awaitable[Staged]]

SKIPS = (Forbidden, InvalidRequest, Unavailable)
"""What speaks against one model and not against the call."""


class Names(msgspec.Struct, frozen=True):
    """The wishes of a call, looked up: those about ways, and those about models."""

    narrowing: Narrowing | None
    """None where nothing is said of ways."""
    models: frozenset[str]
    """The only models; empty where all may."""
    ignored: frozenset[str]

    def allows(self, model: Model) -> bool:
        """Say whether a model may answer."""
        return model.name not in self.ignored and (not self.models or model.name in self.models)


async def choose(snapshot: Snapshot, routes: Routes, backlog: Backlog, authentic: Authentic, stage: Stage) -> Quoted:
    """Take a call with wishes to its quotes: the first model's, and in `others` those of the fallbacks.

    Raises InvalidRequest, NotFound for an unknown model, Unavailable, and PaymentRequired above `max_price`.
    """
    call = authentic.call
    wish = call.wish or Wish()
    if call.quote:
        raise InvalidRequest("A quote is kept for one model. Leave the choice out, or the quote.", param="quote")
    names = looked_up(snapshot, wish)
    if call.model == AUTO and snapshot.model(AUTO) is None:
        quoted = await _auto(snapshot, authentic, names, stage, routes.serves)
        return chosen(routes, backlog, quoted, wish)
    resolved = _named(snapshot, authentic, wish, names)
    quoted = _quoted(snapshot, await _staged(resolved, stage), wish, names.narrowing, routes.serves)
    return msgspec.structs.replace(quoted[0], others=tuple(quoted[1:]))


def looked_up(snapshot: Snapshot, wish: Wish) -> Names:
    """Look the names of a wish up. Raises InvalidRequest for one that nothing here bears."""
    ways = snapshot.pools.keys() | snapshot.upstreams.keys()
    only_ways, only_models = _sorted_out(snapshot, ways, wish.only, "only")
    no_ways, no_models = _sorted_out(snapshot, ways, wish.ignore, "ignore")
    for name in wish.order:
        if name not in ways:
            raise _unknown(name, "order")
    narrowing = Narrowing(
        order=wish.order, only=only_ways, ignore=no_ways, single=not wish.allow_fallbacks, sort=wish.sort
    )
    return Names(None if narrowing == Narrowing() else narrowing, only_models, no_models)


def _sorted_out(
    snapshot: Snapshot, ways: Iterable[str], names: Sequence[str], field: str
) -> tuple[frozenset[str], frozenset[str]]:
    """Tell the names of pools and upstreams from those of models."""
    found_ways, found_models = set(), set()
    for name in names:
        if name in ways:
            found_ways.add(name)
        elif (model := snapshot.model(name)) is not None:
            found_models.add(model.name)
        else:
            raise _unknown(name, field)
    return frozenset(found_ways), frozenset(found_models)


def _unknown(name: str, field: str) -> InvalidRequest:
    what = "upstream or pool" if field == "order" else "upstream, pool or model"
    return InvalidRequest(f"{field}: there is no {what} {name[:64]!r} here.", code="unknown_provider", param=field)


def _named(snapshot: Snapshot, authentic: Authentic, wish: Wish, names: Names) -> list[Resolved]:
    """Resolve the model that a call names, and its fallbacks, all for the task of the first that fits."""
    call = authentic.call
    wanted = [call.model, *wish.models]
    for at, name in enumerate(wish.models):
        if snapshot.model(name) is None:
            raise NotFound(f"There is no model {name[:64]!r}.", code="model_not_found", param=f"models[{at}]")
    found: dict[str, Resolved] = {}
    error: FaregateError | None = None
    for name in wanted[: 1 + (MOST_MODELS if wish.allow_fallbacks else 0)]:
        try:
            resolved = resolve(snapshot, authentic) if name == call.model else resolve_as(snapshot, authentic, name)
        except SKIPS as refusal:
            error = error or refusal
            continue
        first = next(iter(found.values()), resolved)
        if names.allows(resolved.model) and resolved.task == first.task:
            found.setdefault(resolved.model.name, resolved)
    if not found:
        raise error or InvalidRequest(
            "What you say of providers leaves no model.", code="no_way_left", param="provider"
        )
    return list(found.values())


async def _auto(snapshot: Snapshot, authentic: Authentic, names: Names, stage: Stage, serves: Serves) -> list[Quoted]:
    """Resolve and quote all models that do the task and take the input."""
    call = authentic.call
    wish = call.wish or Wish()
    tasks = [task for task in (wish.task or call.task, *(task for task, _ in call.others)) if task is not None]
    if not tasks:
        raise InvalidRequest(f"Say which task {AUTO} is to do.", param="task")
    error: FaregateError | None = None
    for task in dict.fromkeys(tasks):
        found: list[Resolved] = []
        readings = Readings(snapshot, authentic, task)
        for model in sold_for(snapshot, task, authentic.caller):
            if not names.allows(model):
                continue
            try:
                resolved = readings.resolve(model)
            except SKIPS as refusal:
                error = error or refusal
                continue
            if resolved.task == task:
                found.append(resolved)
        if found:
            return _quoted(snapshot, await _staged(found, stage), wish, names.narrowing, serves)
    if isinstance(error, InvalidRequest):
        raise InvalidRequest(
            f"No model takes this input. One says: {error.message}", code="no_model_fits", param=error.param
        )
    raise NotFound(f"No model for sale does {tasks[0]} here.", code="no_model_fits", param="task")


async def _staged(resolved: Sequence[Resolved], stage: Stage) -> list[Staged]:
    """Take the media in once, for all of the models."""
    first = await stage(resolved[0])
    return [first, *(staged_like(first, other) for other in resolved[1:])]


def _quoted(
    snapshot: Snapshot, staged: Sequence[Staged], wish: Wish, narrowing: Narrowing | None, serves: Serves
) -> list[Quoted]:
    """Quote each model, and leave out those above the caller's limits. Raises PaymentRequired where none is left."""
    limit = staged[0].call.max_price_nanos
    quoted = _with_ceilings(staged, narrowing)
    fitting = [each for each in quoted if fitting_prices(each.quote, wish.limits)]
    if not fitting:
        raise PaymentRequired(
            "No model stays within the unit prices of your max_price.", code="price_too_high", param="max_price"
        )
    within = [each for each in fitting if limit is None or each.quote.nanos <= limit]
    if not within:
        first = min(fitting, key=lambda each: each.quote.nanos)
        raise too_dear(snapshot, first.resolved, first.quote.nanos, serves)
    return within


def _with_ceilings(staged: Sequence[Staged], narrowing: Narrowing | None) -> list[Quoted]:
    """Quote each; one whose price does not cover the request is passed over. Raises Unprocessable where all are."""
    quoted: list[Quoted] = []
    error: Unprocessable | None = None
    for each in staged:
        try:
            quoted.append(Quoted(each, priced(each), narrowing=narrowing))
        except Unprocessable as refusal:
            error = error or refusal
    if error is not None and not quoted:
        raise error
    return quoted
