"""How models, pools, upstreams and prices lie in Postgres, as JSON.

`model.spec`, `pool.spec`, `upstream.spec`: the fields of the type but its name, id and price. Parameters are a list of
pairs, since jsonb does not keep the order of keys. `price_version.components`: a list of
`{"unit", "picos", "when"}`, where `when` is a list of `{"parameter", "is", "from", "below"}` or not there; an empty
list is a model that is not for sale from then on, and in a price list one that costs its list price again.
`price_version.outcome`: the outcome policy of that version.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.catalog.model import Model, Pool, Upstream
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent

Json = Mapping[str, Any]


def model_spec(model: Model) -> dict[str, Any]:
    """Write a model for `model.spec`."""
    spec: dict[str, Any] = msgspec.to_builtins(model)
    for name in ("name", "id", "price"):
        del spec[name]
    spec["parameters"] = list(spec["parameters"].items())
    return spec


def read_model(name: str, number: int, spec: Json) -> Model:
    """Read a model, without its price. Fields that this release does not know are left alone. Raises ValueError."""
    plain = {**spec, "name": name, "id": number, "parameters": dict(spec.get("parameters", ()))}
    plain.pop("price", None)
    return msgspec.convert(plain, Model)


def pool_spec(pool: Pool) -> dict[str, Any]:
    """Write a pool for `pool.spec`."""
    spec: dict[str, Any] = msgspec.to_builtins(pool)
    del spec["name"]
    return spec


def read_pool(name: str, spec: Json) -> Pool:
    """Read a pool. Raises ValueError."""
    return msgspec.convert({**spec, "name": name}, Pool)


def upstream_spec(upstream: Upstream) -> dict[str, Any]:
    """Write an upstream for `upstream.spec`."""
    spec: dict[str, Any] = msgspec.to_builtins(upstream)
    del spec["name"]
    return spec


def read_upstream(name: str, spec: Json) -> Upstream:
    """Read an upstream. Raises ValueError."""
    return msgspec.convert({**spec, "name": name}, Upstream)


def components_json(components: tuple[PriceComponent, ...]) -> list[dict[str, Any]]:
    """Write price components for `price_version.components`."""
    plain: list[dict[str, Any]] = msgspec.to_builtins(components)
    return plain


def outcome_json(policy: OutcomePolicy) -> dict[str, Any]:
    """Write an outcome policy for `price_version.outcome`."""
    return {name: getattr(policy, name) for name in policy.__struct_fields__}


def read_outcome(plain: Json | None) -> OutcomePolicy:
    """Read an outcome policy; the usual one where there is none. Raises ValueError."""
    return msgspec.convert(plain or {}, OutcomePolicy)


def read_components(plain: list[Json]) -> tuple[PriceComponent, ...]:
    """Read price components. Raises ValueError."""
    return msgspec.convert(plain, tuple[PriceComponent, ...])
