"""From what lies in Postgres to a snapshot.

What this release cannot read is left out with a warning, since a newer one may have written it: a model
or pool is then not there, and a model whose price cannot be read is not for sale. It never runs for free.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
import structlog

from gateway.catalog.codec import read_components, read_model, read_pool
from gateway.catalog.model import Model, Pool, Snapshot
from gateway.catalog.parameters import compile_checks
from gateway.pricing.price import PriceVersion

log = structlog.get_logger()

T = TypeVar("T")
Entry = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def assemble(
    revision: int,
    models: Sequence[Entry],
    pools: Sequence[Entry],
    prices: Sequence[Entry],
    engines: Collection[str],
) -> Snapshot:
    """Make a snapshot of the rows that `sql/snapshot.sql` answers. Without `engines`, all models are listed."""
    versions = {entry["id"]: version for entry in prices if (version := _readable("price", entry, _version))}
    in_force = {
        version.model_id: version
        for entry in prices
        if entry["in_force"] and (version := versions.get(entry["id"])) and version.components
    }
    known_pools = {entry["name"]: pool for entry in pools if (pool := _readable("pool", entry, _pool))}
    read = {entry["id"]: model for entry in models if (model := _readable("model", entry, _model))}
    listed = {
        model.name: model
        for entry in models
        if not entry["withdrawn"]
        and (known := read.get(entry["id"]))
        and (model := _listed(known, in_force.get(known.id), known_pools, engines))
    }
    return Snapshot(
        revision=revision,
        models=listed,
        pools=known_pools,
        prices=versions,
        model_names={entry["id"]: entry["name"] for entry in models},
        policies={number: model.outcome for number, model in read.items()},
    )


def _readable(kind: str, entry: Entry, read: Callable[[Entry], T]) -> T | None:
    try:
        return read(entry)
    except ValueError as error:
        log.warning("catalog.unreadable", kind=kind, entry=entry.get("name", entry.get("id")), error=str(error))
        return None


def _model(entry: Entry) -> Model:
    model = read_model(entry["name"], entry["id"], entry["spec"])
    compile_checks(model.tasks, model.parameters)  # a default that does not fit is found here and not by a caller
    return model


def _pool(entry: Entry) -> Pool:
    return read_pool(entry["name"], entry["spec"])


def _version(entry: Entry) -> PriceVersion:
    return PriceVersion(
        entry["id"],
        entry["model_id"],
        read_components(entry["components"]),
        _EPOCH + timedelta(microseconds=entry["valid_from"]),
    )


def _listed(
    model: Model, price: PriceVersion | None, pools: Mapping[str, Pool], engines: Collection[str]
) -> Model | None:
    """Give a model with its price and the routes that can serve it here; None where there is no such route."""
    routes = tuple(
        route
        for route in model.routes
        if (pool := pools.get(route.pool)) is not None and (not engines or pool.engine in engines)
    )
    return msgspec.structs.replace(model, price=price, routes=routes) if routes else None
