"""Reading the routes of a model: pools of our own, and upstreams that know it by a name of theirs."""

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args

from gateway.catalog.fields import Fields
from gateway.catalog.model import Model, Route, Upstream
from gateway.catalog.parameters import task_fields
from gateway.catalog.prices import read_prices
from gateway.catalog.problems import shown
from gateway.catalog.upstreams import PROTOCOL_TASKS, cannot_serve

ROUTE_FIELDS = ("pool", "upstream", "model", "order", "weight", "fields", "fixed", "cost")
UPSTREAM_ONLY = ("model", "fields", "fixed", "cost")
EXAMPLE = "a list such as `- pool: gpu` or `- {upstream: gmi, model: NAME}`"

Form = Literal["text", "integer", "list", "milliseconds", "ratio", "tier", "width", "height", "none"]
"""How a field's value is written on the wire, where not as it is."""

FORMS: tuple[Form, ...] = get_args(Form)

_WIRE_FIELD = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){0,7}(?: as (?P<form>[a-z]+))?")


def read_routes(fields: Fields, upstreams: dict[str, Upstream]) -> tuple[Route, ...]:
    """Read the routes of a model: each pool once, and each upstream's model once."""
    routes: list[Route] = []
    before = fields.problems
    for entry in _entries(fields):
        route = _route(entry, upstreams)
        if any(_place(route) == _place(known) for known in routes):
            what = "model of an upstream" if route.upstream else "pool"
            entry.wrong_here(f"each {what} once", shown(" ".join(filter(None, _place(route)))))
        routes.append(route)
    if not routes and fields.problems == before:
        fields.wrong("routes", EXAMPLE)
    return tuple(routes)


def check_upstream_routes(model: Model, upstreams: dict[str, Upstream], fields: Fields) -> None:
    """Report what a model's upstreams cannot serve, and fields on their wires that stand for none of the model's."""
    known = {name for task in model.tasks for name in task_fields(task)} | set(model.parameters)
    for route, entry in zip(model.routes, _entries(fields), strict=True):
        upstream = upstreams.get(route.upstream)
        if upstream is None:
            continue
        if missing := cannot_serve(upstream, model.tasks):
            able = ", ".join(PROTOCOL_TASKS[upstream.protocol])
            entry.wrong("upstream", f"tasks of the protocol {upstream.protocol} ({able})", missing)
        group = entry.group("fields")
        for name in route.fields:
            if name not in known and group is not None:
                group.wrong(name, "a field of the model's tasks or one of its parameters", shown(name))


def _entries(fields: Fields) -> Iterator[Fields]:
    for node, path in fields.items("routes", EXAMPLE):
        entry = fields.of(node, path)
        if entry is not None:
            yield entry


def _place(route: Route) -> tuple[str, ...]:
    return (route.upstream, route.model) if route.upstream else (route.pool,)


def _route(fields: Fields, upstreams: dict[str, Upstream]) -> Route:
    fields.known(ROUTE_FIELDS)
    order, weight = fields.whole("order", 0, 0, 100), fields.whole("weight", 1, 1, 1000)
    if fields.node("upstream") is None:
        for name in UPSTREAM_ONLY:
            if fields.node(name) is not None:
                fields.wrong(name, "`upstream` beside it")
        return Route(pool=fields.text("pool"), order=order, weight=weight)
    if fields.node("pool") is not None:
        fields.wrong("pool", "either `pool` or `upstream`: an upstream has its own pool")
    name = fields.text("upstream")
    upstream = upstreams.get(name)
    if upstream is None:
        fields.wrong("upstream", f"one of the upstreams {', '.join(upstreams) or '(there are none)'}", shown(name))
    return Route(
        pool=upstream.pool if upstream else "",
        order=order,
        weight=weight,
        upstream=name,
        model=fields.text("model"),
        fields=_wire_fields(fields),
        fixed=_fixed(fields),
        cost=read_prices(fields, "cost"),
    )


def _wire_fields(fields: Fields) -> dict[str, str]:
    found = {}
    for name, text, group in fields.texts("fields"):
        matches = [_WIRE_FIELD.fullmatch(part.strip()) for part in text.split(",")]
        if not all(match and match["form"] in (None, *FORMS) for match in matches):
            group.wrong(name, f"`NAME` or `NAME as FORM`, or several with commas; FORM is one of {', '.join(FORMS)}")
        found[name] = text
    return found


def _fixed(fields: Fields) -> dict[str, Any]:
    plain = fields.plain("fixed") if fields.group("fixed") else {}
    return plain if isinstance(plain, dict) else {}
