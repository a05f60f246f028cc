"""Step 4: where a request will run, and where else it may. Full queues refuse it here, before any hold is taken."""

import msgspec

from gateway.catalog.model import Pool
from gateway.contract.inputs import Input
from gateway.contract.request import Leg, encode_input
from gateway.errors import FaregateError, InvalidRequest, Unavailable
from gateway.flow.quote import Quoted
from gateway.pricing.quote import Quote
from gateway.pricing.terms import NO_TERMS, Terms
from gateway.routing.backlog import Backlog
from gateway.routing.choice import Routes
from gateway.routing.lanes import Lane

MOST_LEGS = 12
"""The ways that one request may go beside its first."""


class Routed(msgspec.Struct, frozen=True):
    """A quoted call with the pool that will run it, and the ways that are left where that one fails."""

    quoted: Quoted
    """Of the model that is tried first."""
    pool: Pool
    hold_nanos: int
    """The highest ceiling of all its ways."""
    only: tuple[str, ...] = ()
    legs: tuple[Leg, ...] = ()
    alternatives: tuple[int, ...] = ()
    """The price versions of the other models that it may run on."""
    terms: Terms = NO_TERMS
    """What its charge depends on beside its units, whichever way it goes."""
    tokens: int = 0
    """The most tokens that any of its ways can come to, in and out."""

    def model_at(self, price: int) -> str:
        """Name the model that answers at a price version, which each of its ways has pinned."""
        return next((leg.model for leg in self.legs if leg.price == price), self.quoted.resolved.model.name)


def route(routes: Routes, backlog: Backlog, quoted: Quoted) -> Routed:
    """Choose the ways of a request.

    Raises Unavailable when none is left, TooManyRequests when all their queues are full.
    """
    lanes = routes.ways(quoted.resolved.model, quoted.narrowing) if not quoted.others else ()
    if len(lanes) == 1:
        backlog.admit(lanes[0].pool)
        most = quoted.quote
        return Routed(quoted, lanes[0].pool, most.nanos, lanes[0].only, terms=most.terms, tokens=_tokens(most))
    return _several(routes, backlog, quoted)


def _several(routes: Routes, backlog: Backlog, quoted: Quoted) -> Routed:
    ways: list[tuple[Quoted, Lane]] = []
    refusal: FaregateError | None = None
    for each in (quoted, *quoted.others):
        try:
            lanes = routes.ways(each.resolved.model, each.narrowing)
        except (Unavailable, InvalidRequest) as error:
            refusal = refusal or error
            continue
        for lane in lanes:
            if backlog.full(lane.pool):
                refusal = refusal or backlog.refusal(lane.pool)
            else:
                ways.append((each, lane))
    if not ways:
        raise refusal or Unavailable("No route serves this model at the moment.", code="no_route", param="model")
    ordered = _in_order(ways)
    return _routed(ordered[:1] if quoted.narrowing is not None and quoted.narrowing.single else ordered)


def _in_order(ways: list[tuple[Quoted, Lane]]) -> list[tuple[Quoted, Lane]]:
    """Leave out what only waits where another way serves now, and put last what fails at the moment."""
    serving = [way for way in ways if way[1].stand != "idle"]
    return sorted(serving or ways, key=lambda way: way[1].stand == "tripped")[: MOST_LEGS + 1]


def _routed(ways: list[tuple[Quoted, Lane]]) -> Routed:
    (first, lane), others = ways[0], ways[1:]
    price = first.resolved.price.id
    legs = tuple(_leg(first, quoted, other) for quoted, other in others)
    return Routed(
        first,
        lane.pool,
        max(quoted.quote.nanos for quoted, _ in ways),
        lane.only,
        legs,
        tuple(dict.fromkeys(leg.price for leg in legs if leg.price != price)),
        _terms(first.quote, [quoted.quote for quoted, _ in others]),
        max(_tokens(quoted.quote) for quoted, _ in ways),
    )


def _terms(first: Quote, others: list[Quote]) -> Terms:
    """Put together what all ways are rated under: each model's own traits, and one discount."""
    traits = first.terms.traits
    differing = {
        each.price.id: each.terms.traits
        for each in others
        if each.price.id != first.price.id and each.terms.traits != traits
    }
    return msgspec.structs.replace(first.terms, others=differing) if differing else first.terms


def _tokens(most: Quote) -> int:
    return most.units.input_tokens + most.units.output_tokens


def _leg(first: Quoted, quoted: Quoted, lane: Lane) -> Leg:
    resolved = quoted.resolved
    same = quoted is first or resolved.input == first.resolved.input
    return Leg(
        lane.pool.name,
        resolved.model.name,
        resolved.price.id,
        b"" if same else encoded(resolved.input),
        list(lane.only),
    )


def encoded(value: Input) -> bytes:
    """Write an input as the queue carries it. Raises InvalidRequest where a number in it does not fit."""
    try:
        return encode_input(value)
    except OverflowError:  # of JSON's numbers in schemas and tools, the queue carries those of 64 bits
        raise InvalidRequest("A number in the input does not fit into 64 bits.") from None
