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

from gateway.catalog.codec import model_spec, pool_spec
from gateway.catalog.load import MODEL_FIELDS, PARAMETER_FIELDS, POOL_FIELDS
from gateway.catalog.model import Catalog, Model, Parameter, Pool, Route
from gateway.catalog.prices import per_text, usd_of_row
from gateway.pricing.price import PriceComponent

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ._-]*|[0-9]+[KM]? [a-z ]+")
HEAD = "# Written by `faregate catalog export`. docs/reference/catalog.md describes every field.\n"


class _Usd(str):
    """A decimal that is written as it is, without quotes."""


def export(catalog: Catalog) -> str:
    """Write a catalog as YAML. Fields that say no more than their default are left out."""
    tree = {
        "pools": {name: _pool(pool) for name, pool in catalog.pools.items()},
        "models": {name: _model(model, catalog.prices.get(name, ())) for name, model in catalog.models.items()},
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
    return _spoken(pool_spec(pool), pool_spec(Pool(name="", engine=pool.engine)), POOL_FIELDS, always=("engine",))


def _model(model: Model, price: tuple[PriceComponent, ...]) -> dict[str, Any]:
    spec = model_spec(model)
    spec["parameters"] = {name: _parameter(parameter) for name, parameter in model.parameters.items()}
    spec["routes"] = [_row(msgspec.to_builtins(route), Route(pool="")) for route in model.routes]
    spec["picks"] = [_flow(pick) for pick in spec["picks"]]
    spec["tasks"] = _flow_list(list(model.tasks))
    if price:
        spec["price"] = [_flow({"usd": _Usd(usd_of_row(part)), "per": per_text(part)}) for part in price]
    plain = model_spec(Model(name="", tasks=(), description="", routes=()))
    plain |= {"parameters": {}, "picks": []}
    return _spoken(spec, plain, MODEL_FIELDS)


def _parameter(parameter: Parameter) -> dict[str, Any]:
    plain = msgspec.to_builtins(Parameter(type=parameter.type))
    spec: dict[str, Any] = msgspec.to_builtins(parameter)
    if parameter.choices:
        spec["choices"] = _flow_list(list(parameter.choices))
    return _spoken(spec, plain, PARAMETER_FIELDS, always=("type",))


def _row(row: dict[str, Any], default: Any) -> Any:
    return _flow(_spoken(row, msgspec.to_builtins(default), tuple(row)))


def _spoken(
    spec: dict[str, Any], default: dict[str, Any], order: tuple[str, ...], always: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Keep what differs from the default, in the order in which the fields are documented."""
    return {name: spec[name] for name in order if name in spec and (name in always or spec[name] != default.get(name))}


def _flow(row: dict[str, Any]) -> CommentedMap:
    out = CommentedMap({name: _quoted(value) for name, value in row.items()})
    out.fa.set_flow_style()
    return out


def _flow_list(items: list[Any]) -> CommentedSeq:
    out = CommentedSeq([_quoted(item) for item in items])
    out.fa.set_flow_style()
    return out


def _quoted(value: Any) -> Any:
    """Quote text inside braces and brackets, but for plain words: there the emitter leaves marks that YAML reads."""
    if type(value) is not str or _PLAIN.fullmatch(value):
        return value
    return DoubleQuotedScalarString(value)
