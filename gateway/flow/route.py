"""Step 4: where a request will run. A full queue refuses it here, before any hold is taken."""

import msgspec

from gateway.catalog.model import Pool
from gateway.flow.quote import Quoted
from gateway.routing.backlog import Backlog
from gateway.routing.choice import Routes


class Routed(msgspec.Struct, frozen=True):
    """A quoted call with the pool that will run it."""

    quoted: Quoted
    pool: Pool


def route(routes: Routes, backlog: Backlog, quoted: Quoted) -> Routed:
    """Choose a pool. Raises Unavailable when no route is left, TooManyRequests when its queue is full."""
    pool = routes.choose(quoted.resolved.model)
    backlog.admit(pool)
    return Routed(quoted, pool)
