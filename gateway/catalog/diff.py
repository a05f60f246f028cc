"""What changes from one catalog to another, for people and for scripts."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from gateway.catalog.codec import model_spec, pool_spec
from gateway.catalog.model import Catalog
from gateway.catalog.prices import dollars_of_row, per_text
from gateway.pricing.price import PRICED_UNITS, PriceComponent

Action = Literal["added", "removed", "changed"]
SIGNS: dict[Action, str] = {"added": "+", "removed": "-", "changed": "~"}


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field that changes; `old` or `new` is null where the field is not there."""

    field: str
    old: Any
    new: Any

    def text(self) -> str:
        """Write it for people."""
        return f"{self.field}: {_shown(self.old)} -> {_shown(self.new)}"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A pool or a model that is added, removed or changed. A removed model is withdrawn and keeps its history."""

    kind: Literal["pool", "model"]
    name: str
    action: Action
    fields: tuple[FieldChange, ...] = ()
    price: tuple[FieldChange, ...] = ()
    """Price components that change, as rows of US dollars: a model with any of them gets a new price version."""

    def text(self) -> str:
        """Write it for people, one line a field."""
        lines = [f"{SIGNS[self.action]} {self.kind} {self.name}"]
        if self.action == "added":
            lines += [f"    {change.field}: {_shown(change.new)}" for change in self.price]
        elif self.action == "changed":
            lines += [f"    {change.text()}" for change in (*self.price, *self.fields)]
        return "\n".join(lines)


def diff(old: Catalog, new: Catalog) -> tuple[Change, ...]:
    """Compare two catalogs. The order of models, of fields and of price rows is no difference."""
    pools = _compare(
        "pool", *({name: pool_spec(pool) for name, pool in each.pools.items()} for each in (old, new)), prices={}
    )
    prices = {
        name: rows
        for name in {**old.models, **new.models}
        if (rows := _price_rows(old.prices.get(name), new.prices.get(name)))
    }
    models = _compare(
        "model",
        *({name: model_spec(model) for name, model in each.models.items()} for each in (old, new)),
        prices=prices,
    )
    return (*pools, *models)


def diff_text(changes: tuple[Change, ...]) -> str:
    """Write a difference for people."""
    return "\n".join(change.text() for change in changes) if changes else "no changes"


def _compare(
    kind: Literal["pool", "model"],
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    prices: Mapping[str, tuple[FieldChange, ...]],
) -> Iterator[Change]:
    for name in old:
        if name not in new:
            yield Change(kind=kind, name=name, action="removed")
    for name, spec in new.items():
        rows = prices.get(name, ())
        if name not in old:
            yield Change(kind=kind, name=name, action="added", price=rows)
            continue
        fields = tuple(_fields(_flat("", old[name]), _flat("", spec)))
        if fields or rows:
            yield Change(kind=kind, name=name, action="changed", fields=fields, price=rows)


def _price_rows(
    old: tuple[PriceComponent, ...] | None, new: tuple[PriceComponent, ...] | None
) -> tuple[FieldChange, ...]:
    before, after = ({part.unit: part for part in each or ()} for each in (old, new))
    return tuple(
        _price_change(before.get(unit), after.get(unit)) for unit in PRICED_UNITS if before.get(unit) != after.get(unit)
    )


def _price_change(old: PriceComponent | None, new: PriceComponent | None) -> FieldChange:
    known = new or old
    assert known is not None
    return FieldChange(
        field=f"price per {per_text(known)}",
        old=dollars_of_row(old) if old else None,
        new=dollars_of_row(new) if new else None,
    )


def _fields(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldChange]:
    for field in sorted({*old, *new}):
        if old.get(field) != new.get(field):
            yield FieldChange(field=field, old=old.get(field), new=new.get(field))


def _flat(path: str, value: Any) -> dict[str, Any]:
    """Name every leaf by its path. Lists of plain values are leaves; what a parameter does not say is none."""
    if path == "parameters":
        value = dict(value)
    if isinstance(value, dict):
        inner = ((f"{path}.{key}" if path else key, item) for key, item in value.items())
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        inner = ((f"{path}[{number}]", item) for number, item in enumerate(value))
    elif path.startswith("parameters.") and value in (None, "", False, ()):
        return {}
    else:
        return {path: list(value) if isinstance(value, tuple) else value}
    return {leaf: one for at, item in inner for leaf, one in _flat(at, item).items()}


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    return value if isinstance(value, str) and value.startswith("$") else msgspec.json.encode(value).decode()
