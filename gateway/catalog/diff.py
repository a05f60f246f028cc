"""What changes from one catalog to another, for people and for scripts."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from gateway.catalog.codec import model_spec, pool_spec, upstream_spec
from gateway.catalog.model import Catalog, Sold
from gateway.catalog.prices import dollars_of_row, per_text
from gateway.money import usd_text
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PRICED_UNITS, PriceComponent

Action = Literal["added", "removed", "changed"]
Kind = Literal["pool", "upstream", "model", "price_list"]
SIGNS: dict[Action, str] = {"added": "+", "removed": "-", "changed": "~"}


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field that changes; `old` or `new` is null where the field is not there."""

    field: str
    old: Any
    new: Any

    def text(self) -> str:
        """Write it for people."""
        return f"{self.field}: {_shown(self.old)} -> {_shown(self.new)}"


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """Who said last what something costs."""

    version: int
    door: str
    author: str
    at: datetime
    reason: str

    def text(self) -> str:
        """Write it for people."""
        said = f"version {self.version}, {self.at:%Y-%m-%d %H:%M:%SZ}, by {self.author or 'somebody'} ({self.door})"
        return f"{said}: {self.reason}" if self.reason else said


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A pool, an upstream, a model or a price in a list that is added, removed or changed.

    A removed model is withdrawn and keeps its history. A price in a list is named as `LIST: MODEL`.
    """

    kind: Kind
    name: str
    action: Action
    fields: tuple[FieldChange, ...] = ()
    price: tuple[FieldChange, ...] = ()
    """Price components that change, as rows of US dollars: a model with any of them gets a new price version."""
    last: Word | None = None
    """Who said last what it costs, where its price changes and they did not say it in a file."""

    @property
    def reprices(self) -> bool:
        """Whether it changes what requests cost."""
        return bool(self.price) or any(change.field.startswith("outcome.") for change in self.fields)

    def text(self) -> str:
        """Write it for people, one line a field."""
        lines = [f"{SIGNS[self.action]} {self.kind} {self.name}"]
        if self.action == "added":
            lines += [f"    {change.field}: {_shown(change.new)}" for change in self.price]
        elif self.action == "changed":
            lines += [f"    {change.text()}" for change in (*self.price, *self.fields)]
        if self.last is not None:
            lines.append(f"    last priced elsewhere: {self.last.text()}")
        return "\n".join(lines)


def diff(old: Catalog, new: Catalog) -> tuple[Change, ...]:
    """Compare two catalogs. The order of models, of fields and of price rows is no difference."""
    pools = _compare(
        "pool", *({name: pool_spec(pool) for name, pool in each.pools.items()} for each in (old, new)), prices={}
    )
    upstreams = _compare(
        "upstream",
        *({name: upstream_spec(one) for name, one in each.upstreams.items()} for each in (old, new)),
        prices={},
    )
    prices = {
        name: rows for name in {**old.models, **new.models} if (rows := price_changes(old.sold(name), new.sold(name)))
    }
    models = _compare(
        "model",
        *({name: model_spec(model) for name, model in each.models.items()} for each in (old, new)),
        prices=prices,
    )
    return (*pools, *upstreams, *models, *_list_changes(old.price_lists or {}, new.price_lists))


def _list_changes(
    old: Mapping[str, Mapping[str, Sold]], new: Mapping[str, Mapping[str, Sold]] | None
) -> Iterator[Change]:
    """Compare price lists, where the new catalog says anything of them."""
    if new is None:
        return
    for name in {**old, **new}:
        before, after = old.get(name, {}), new.get(name, {})
        if name not in old and not after:
            yield Change(kind="price_list", name=name, action="added")
        for model in {**before, **after}:
            rows = price_changes(before.get(model, Sold()), after.get(model, Sold()))
            if rows:
                action: Action = "added" if model not in before else "removed" if model not in after else "changed"
                yield Change(kind="price_list", name=list_entry(name, model), action=action, price=rows)


def list_entry(price_list: str, model: str) -> str:
    """Name the price of a model in a list."""
    return f"{price_list}: {model}"


def diff_text(changes: tuple[Change, ...]) -> str:
    """Write a difference for people."""
    return "\n".join(change.text() for change in changes) if changes else "no changes"


def _compare(
    kind: Kind,
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


def price_changes(old: Sold, new: Sold) -> tuple[FieldChange, ...]:
    """Compare two prices row by row. Only the order among the rows of one unit is a difference."""
    before, after = ({(part.unit, part.words): part for part in each.rows} for each in (old, new))
    changes = [
        _price_change(before.get(key), after.get(key))
        for key in sorted({**before, **after}, key=lambda key: PRICED_UNITS.index(key[0]))
        if before.get(key) != after.get(key)
    ]
    for unit in PRICED_UNITS:
        orders = [[words for each, words in rows if each == unit] for rows in (before, after)]
        if orders[0] != orders[1] and set(orders[0]) == set(orders[1]):
            field = f"order of prices per {unit.replace('_', ' ')}"
            changes.append(FieldChange(field=field, old=orders[0], new=orders[1]))
    if old.minimum_nanos != new.minimum_nanos:
        minimums = [f"${usd_text(each.minimum_nanos)}" if each.minimum_nanos else None for each in (old, new)]
        changes.append(FieldChange(field="minimum", old=minimums[0], new=minimums[1]))
    return tuple(changes)


def outcome_changes(old: OutcomePolicy, new: OutcomePolicy) -> tuple[FieldChange, ...]:
    """Compare what requests cost that do not succeed."""
    return tuple(
        FieldChange(field=f"outcome.{name}", old=getattr(old, name), new=getattr(new, name))
        for name in OutcomePolicy.__struct_fields__
        if getattr(old, name) != getattr(new, name)
    )


def _price_change(old: PriceComponent | None, new: PriceComponent | None) -> FieldChange:
    known = new or old
    assert known is not None
    return FieldChange(
        field=f"price per {per_text(known)}{f' with {known.words}' if known.when else ''}",
        old=dollars_of_row(old) if old else None,
        new=dollars_of_row(new) if new else None,
    )


def _fields(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldChange]:
    for field in sorted({*old, *new}):
        if old.get(field) != new.get(field):
            yield FieldChange(field=field, old=old.get(field), new=new.get(field))


def _flat(path: str, value: Any) -> dict[str, Any]:
    """Name every leaf by its path. Lists of plain values are leaves; what a parameter or route does not say is none."""
    if path == "parameters":
        value = dict(value)
    if isinstance(value, dict):
        inner = ((f"{path}.{key}" if path else key, item) for key, item in value.items())
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        inner = ((f"{path}[{number}]", item) for number, item in enumerate(value))
    elif path.startswith(("parameters.", "routes[")) and value in (None, "", False, ()):
        return {}
    else:
        return {path: list(value) if isinstance(value, tuple) else value}
    return {leaf: one for at, item in inner for leaf, one in _flat(at, item).items()}


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    return value if isinstance(value, str) and value.startswith("$") else msgspec.json.encode(value).decode()
