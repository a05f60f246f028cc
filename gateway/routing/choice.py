"""The choice among a model's routes: the lowest order first, by weight among equals."""

import random
from collections.abc import Callable

from gateway.catalog.model import Model, Pool, Route, Snapshot
from gateway.errors import Unavailable


class Routes:
    """Chooses routes in the catalog as it stands at each call."""

    def __init__(self, snapshot: Callable[[], Snapshot], draw: random.Random) -> None:
        self._snapshot = snapshot
        self._draw = draw

    def choose(self, model: Model) -> Pool:
        """Choose the pool for a request of `model`. Raises Unavailable when none of its pools exists any more."""
        pools = self._snapshot().pools
        if len(model.routes) == 1:
            pool = pools.get(model.routes[0].pool)
            if pool is not None:
                return pool
        open_routes = [route for route in model.routes if route.pool in pools]
        if not open_routes:
            raise Unavailable("No route serves this model at the moment.", code="no_route", param="model")
        first = min(route.order for route in open_routes)
        return pools[self._by_weight([route for route in open_routes if route.order == first]).pool]

    def _by_weight(self, routes: list[Route]) -> Route:
        return self._draw.choices(routes, [route.weight for route in routes])[0]
