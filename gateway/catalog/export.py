"""A catalog written back as YAML: what `load` reads as the same catalog."""

import io
import re
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from gateway.catalog.codec import model_spec, pool_spec, upstream_spec
from gateway.catalog.entries import MODEL_FIELDS, PARAMETER_FIELDS, WEIGHTS_FIELDS
from gateway.catalog.load import POOL_FIELDS
from gateway.catalog.model import Catalog, Model, Parameter, Pool, Route, Sold, Upstream, Weights
from gateway.catalog.prices import per_text, usd_of_row
from gateway.catalog.routes import ROUTE_FIELDS
from gateway.catalog.upstreams import UPSTREAM_FIELDS
from gateway.money import price_text, usd_text
from gateway.pricing.conditions import when_plain
from gateway.pricing.price import PriceComponent

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ._-]*|[0-9]+[KM]? [a-z ]+")
HEAD = "# Written by `faregate catalog export`. docs/reference/catalog.md describes every field.\n"


class _Usd(str):
    """A decimal that is written as it is, without quotes."""


def export(catalog: Catalog) -> str:
    """Write a catalog as YAML. Fields that say no more than their default are left out."""
    tree: dict[str, Any] = {"prices_as_of": catalog.prices_as_of} if catalog.prices_as_of else {}
    tree["pools"] = {name: _pool(pool) for name, pool in catalog.pools.items()}
    if catalog.upstreams:
        tree["upstreams"] = {name: _upstream(upstream) for name, upstream in catalog.upstreams.items()}
    tree["models"] = {name: _model(model, catalog.sold(name)) for name, model in catalog.models.items()}
    if catalog.price_lists:
        tree["price_lists"] = {
            name: {model: _sold(sold) for model, sold in models.items()} for name, models in catalog.price_lists.items()
        }
    yaml = YAML(typ="rt", pure=True)
    yaml.Representer = _Representer
    yaml.width = 110
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(tree, out)
    return HEAD + out.getvalue()


class _Representer(RoundTripRepresenter):
    """Writes decimals plainly."""

    def represent_usd(self, data: _Usd) -> ScalarNode:
        """Write a decimal."""
        kind = "float" if "." in data else "int"
        return self.represent_scalar(f"tag:yaml.org,2002:{kind}", str(data))


_Representer.add_representer(_Usd, _Representer.represent_usd)


def _pool(pool: Pool) -> dict[str, Any]:
    spec = pool_spec(pool)
    if pool.cost_picos_per_hour is not None:
        spec["cost_usd_per_hour"] = _Usd(price_text(pool.cost_picos_per_hour))
    return _spoken(spec, pool_spec(Pool(name="", engine=pool.engine)), POOL_FIELDS, always=("engine",))


def _upstream(upstream: Upstream) -> dict[str, Any]:
    plain = upstream_spec(Upstream(name="", protocol=upstream.protocol, url="", pool=""))
    return _spoken(upstream_spec(upstream), plain, UPSTREAM_FIELDS, always=("protocol",))


def _sold(sold: Sold) -> dict[str, Any]:
    said: dict[str, Any] = {"price": _price(sold.rows)} if sold.rows else {}
    if sold.minimum_nanos:
        said["minimum_usd"] = _Usd(usd_text(sold.minimum_nanos))
    return said


def _model(model: Model, sold: Sold) -> dict[str, Any]:
    spec = model_spec(model)
    spec["parameters"] = {name: _parameter(parameter) for name, parameter in model.parameters.items()}
    spec["routes"] = [_route(route) for route in model.routes]
    spec["aliases"] = _flow_list(list(model.aliases))
    spec["weights"] = _flow(_spoken(spec["weights"], msgspec.to_builtins(Weights()), WEIGHTS_FIELDS))
    spec["picks"] = [_flow(pick) for pick in spec["picks"]]
    spec["tasks"] = _flow_list(list(model.tasks))
    spec |= _sold(sold)
    plain = model_spec(Model(name="", tasks=(), description="", routes=()))
    plain |= {"parameters": {}, "picks": [], "aliases": [], "weights": {}}
    return _spoken(spec, plain, MODEL_FIELDS)


def _parameter(parameter: Parameter) -> dict[str, Any]:
    plain = msgspec.to_builtins(Parameter(type=parameter.type))
    spec: dict[str, Any] = msgspec.to_builtins(parameter)
    if parameter.choices:
        spec["choices"] = _flow_list(list(parameter.choices))
    return _spoken(spec, plain, PARAMETER_FIELDS, always=("type",))


def _price(parts: tuple[PriceComponent, ...]) -> list[CommentedMap]:
    return [_flow(_price_row(part)) for part in parts]


def _price_row(part: PriceComponent) -> dict[str, Any]:
    row: dict[str, Any] = {"usd": _Usd(usd_of_row(part)), "per": per_text(part)}
    return row | {"when": _flow_value(when_plain(part.when))} if part.when else row


def _route(route: Route) -> dict[str, Any]:
    spec: dict[str, Any] = msgspec.to_builtins(route)
    if not route.upstream:
        return _flow(_spoken(spec, msgspec.to_builtins(Route(pool="")), ROUTE_FIELDS))
    spec |= {"fields": _flow(route.fields), "fixed": _flow_value(route.fixed), "cost": _price(route.cost)}
    plain = msgspec.to_builtins(Route(pool=route.pool)) | {"cost": []}
    return _spoken(spec, plain, ROUTE_FIELDS)


def _spoken(
    spec: dict[str, Any], default: dict[str, Any], order: tuple[str, ...], always: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Keep what differs from the default, in the order in which the fields are documented."""
    return {name: spec[name] for name in order if name in spec and (name in always or spec[name] != default.get(name))}


def _flow(row: dict[str, Any]) -> CommentedMap:
    out = CommentedMap({_quoted(name): _quoted(value) for name, value in row.items()})
    out.fa.set_flow_style()
    return out


def _flow_list(items: list[Any]) -> CommentedSeq:
    out = CommentedSeq([_quoted(item) for item in items])
    out.fa.set_flow_style()
    return out


def _flow_value(value: Any) -> Any:
    """Write any value on one line, with all that is in it."""
    if isinstance(value, dict):
        return _flow({name: _flow_value(each) for name, each in value.items()})
    return _flow_list([_flow_value(each) for each in value]) if isinstance(value, list | tuple) else value


def _quoted(value: Any) -> Any:
    """Quote text inside braces and brackets, but for plain words: there the emitter leaves marks that YAML reads."""
    if type(value) is not str or _PLAIN.fullmatch(value):
        return value
    return DoubleQuotedScalarString(value)
