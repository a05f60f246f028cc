"""From what lies in Postgres to a snapshot.

What this release cannot read is left out with a warning, since a newer one may have written it: a model,
pool or upstream is then not there, and a model whose price cannot be read is not for sale. It never runs for free.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
import structlog

from gateway.catalog.codec import read_components, read_model, read_outcome, read_pool, read_upstream
from gateway.catalog.model import Model, Pool, Route, Snapshot, Upstream
from gateway.catalog.parameters import compile_checks
from gateway.catalog.vendor import compile_vendor
from gateway.pricing.price import PriceVersion

log = structlog.get_logger()

T = TypeVar("T")
Entry = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def assemble(
    revision: int,
    models: Sequence[Entry],
    pools: Sequence[Entry],
    upstreams: Sequence[Entry],
    prices: Sequence[Entry],
    engines: Collection[str],
) -> Snapshot:
    """Make a snapshot of the rows that `sql/snapshot.sql` answers. Without `engines`, all models are listed."""
    versions = {entry["id"]: version for entry in prices if (version := _readable("price", entry, _version))}
    lists = _in_force(prices, versions)
    in_force = lists.pop(None, {})
    known_pools = {entry["name"]: pool for entry in pools if (pool := _readable("pool", entry, _pool))}
    known_upstreams = {entry["name"]: one for entry in upstreams if (one := _readable("upstream", entry, _upstream))}

    def served(route: Route) -> bool:
        pool = known_pools.get(route.pool)
        known = not route.upstream or route.upstream in known_upstreams
        return known and pool is not None and (not engines or pool.engine in engines)

    read = {entry["id"]: model for entry in models if (model := _readable("model", entry, _model))}
    listed = {
        model.name: model
        for entry in models
        if not entry["withdrawn"]
        and (known := read.get(entry["id"]))
        and (model := _listed(known, in_force.get(known.id), served))
    }
    return Snapshot(
        revision=revision,
        models=listed,
        pools=known_pools,
        prices=versions,
        model_names={entry["id"]: entry["name"] for entry in models},
        upstreams=known_upstreams,
        aliases={alias: model.name for model in listed.values() for alias in model.aliases},
        price_lists={number: sold for number, sold in lists.items() if number is not None},
    )


def _in_force(
    prices: Sequence[Entry], versions: Mapping[int, PriceVersion]
) -> dict[int | None, dict[int, PriceVersion]]:
    """Give the versions in force by price list and model; those of the list price under None.

    One without components is left out: such a model is not for sale, and in a price list costs its list price.
    """
    lists: dict[int | None, dict[int, PriceVersion]] = {}
    for entry in prices:
        version = versions.get(entry["id"])
        if entry["in_force"] and version is not None and version.components:
            lists.setdefault(version.price_list_id, {})[version.model_id] = version
    return lists


def _readable(kind: str, entry: Entry, read: Callable[[Entry], T]) -> T | None:
    try:
        return read(entry)
    except ValueError as error:
        log.warning("catalog.unreadable", kind=kind, entry=entry.get("name", entry.get("id")), error=str(error))
        return None


def _model(entry: Entry) -> Model:
    model = read_model(entry["name"], entry["id"], entry["spec"])
    compile_checks(model.tasks, model.parameters)
    compile_vendor(model.vendor_fields)  # a default that does not fit is found here and not by a caller
    return model


def _pool(entry: Entry) -> Pool:
    return read_pool(entry["name"], entry["spec"])


def _upstream(entry: Entry) -> Upstream:
    return read_upstream(entry["name"], entry["spec"])


def _version(entry: Entry) -> PriceVersion:
    return PriceVersion(
        entry["id"],
        entry["model_id"],
        read_components(entry["components"]),
        _EPOCH + timedelta(microseconds=entry["valid_from"]),
        read_outcome(entry["outcome"]),
        entry["minimum_nanos"],
        entry["price_list_id"],
    )


def _listed(model: Model, price: PriceVersion | None, served: Callable[[Route], bool]) -> Model | None:
    """Give a model with its price and the routes that can serve it here; None where there is no such route."""
    routes = tuple(route for route in model.routes if served(route))
    outcome = price.outcome if price is not None else model.outcome
    return msgspec.structs.replace(model, price=price, routes=routes, outcome=outcome) if routes else None
