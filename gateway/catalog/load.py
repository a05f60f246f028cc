"""From the text of a catalog to its types. Everything that is wrong is reported at once."""

from pathlib import Path
from typing import get_args

import msgspec

from gateway.catalog.document import Mapping, Scalar, kind_of
from gateway.catalog.entries import read_model
from gateway.catalog.fields import Fields
from gateway.catalog.model import Catalog, Pool, Sold
from gateway.catalog.names import LIST_NAME, MODEL_NAME, POOL_NAME
from gateway.catalog.parse import parse
from gateway.catalog.prices import read_sold
from gateway.catalog.problems import CatalogError, Problem, Report, shown
from gateway.catalog.rules import check_price, check_rules
from gateway.catalog.upstreams import read_upstreams
from gateway.catalog.workflows import check_workflow, is_workflow
from gateway.contract.pools import EngineName
from gateway.money import PICOS_PER_USD, parse_price

MOST_HOURLY_USD = 100_000

ENGINES: tuple[EngineName, ...] = get_args(EngineName)

TOP_FIELDS = ("prices_as_of", "pools", "upstreams", "models", "price_lists")
POOL_FIELDS = ("engine", "workers", "backlog", "lease_ms", "attempts", "cost_usd_per_hour")
LIST_FIELDS = ("price", "minimum_usd")


def load_file(path: Path) -> Catalog:
    """Read a catalog file. Raises CatalogError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = Problem(line=0, field="", expected="a file that can be read", found=error.strerror or str(error))
        raise CatalogError(str(path), [problem]) from None
    return load(data, str(path))


def load(data: bytes, file: str) -> Catalog:
    """Read the bytes of a catalog; `file` is what errors call it. Raises CatalogError with every problem."""
    root = parse(data, file)
    report = Report()
    if not isinstance(root, Mapping):
        report.add(root.line, "", "a mapping with `pools` and `models`", kind_of(root))
        raise CatalogError(file, report.problems)
    fields = Fields(root, "", report, root.line)
    fields.known(TOP_FIELDS)
    catalog = _catalog(fields, report)
    if report.problems:
        raise CatalogError(file, report.problems)
    return catalog


def _catalog(fields: Fields, report: Report) -> Catalog:
    pools: dict[str, Pool] = {}
    for name, line, pool in fields.named("pools"):
        POOL_NAME.check(report, line, name, "pools")
        pools[name] = _pool(name, pool)
    upstreams = read_upstreams(fields, pools, report)
    as_of = fields.whole("prices_as_of", 0, 0, 2**31 - 1)
    catalog = Catalog(pools=pools, models={}, prices={}, minimums={}, upstreams=upstreams, prices_as_of=as_of)
    entries: dict[str, Fields] = {}
    right: list[str] = []
    for name, line, entry in fields.named("models"):
        MODEL_NAME.check(report, line, name, "models")
        before = len(report.problems)
        entries[name] = entry
        sold = read_sold(entry)
        catalog.prices[name] = sold.rows
        if sold.minimum_nanos:
            catalog.minimums[name] = sold.minimum_nanos
        catalog.models[name] = read_model(name, entry, catalog.upstreams, report)
        if len(report.problems) == before:
            check_rules(catalog.models[name], sold, catalog, entry)
        if len(report.problems) == before:
            right.append(name)
    _check_aliases(catalog, entries)
    for name in right:
        if is_workflow(catalog.models[name], pools):
            check_workflow(catalog.models[name], catalog, entries[name])
    if fields.node("price_lists") is None:
        return catalog
    return msgspec.structs.replace(catalog, price_lists=_price_lists(fields, catalog, frozenset(right), report))


def _price_lists(fields: Fields, catalog: Catalog, right: frozenset[str], report: Report) -> dict[str, dict[str, Sold]]:
    """Read the price lists: by name, and in each by model, what it costs there."""
    lists: dict[str, dict[str, Sold]] = {}
    for name, line, group in fields.named("price_lists"):
        LIST_NAME.check(report, line, name, "price_lists")
        lists[name] = {}
        for model, at, entry in group.entries():
            if model not in catalog.models:
                report.add(at, entry.path, "one of the models of this file", shown(model))
                continue
            entry.known(LIST_FIELDS)
            before = len(report.problems)
            lists[name][model] = read_sold(entry)
            if model in right and len(report.problems) == before:
                check_price(catalog.models[model], lists[name][model], entry)
                if not lists[name][model].rows:
                    entry.wrong("price", "rows; leave the model out where it costs its list price")
    return lists


def _check_aliases(catalog: Catalog, entries: dict[str, Fields]) -> None:
    """Report aliases that are the name or an alias of another model."""
    owners = dict.fromkeys(catalog.models, "the name of a model")
    for name, entry in entries.items():
        aliases = catalog.models[name].aliases
        for (node, path), alias in zip(entry.items("aliases", "a list"), aliases, strict=False):
            if alias in owners:
                entry.wrong_at(node, path, "a name that no model has yet", f"{shown(alias)}, {owners[alias]}")
            owners[alias] = f"an alias of {name}"


def _pool(name: str, fields: Fields) -> Pool:
    fields.known(POOL_FIELDS)
    return Pool(
        name=name,
        engine=fields.word("engine", ENGINES) or "fake",
        workers=fields.whole("workers", 1, 0, 64),
        backlog=fields.whole("backlog", 10_000, 1, 1_000_000),
        lease_ms=fields.whole("lease_ms", 10_000, 500, 600_000),
        attempts=fields.whole("attempts", 3, 1, 100),
        cost_picos_per_hour=_hourly(fields),
    )


def _hourly(fields: Fields) -> int | None:
    """Read what an hour of a worker costs the operator."""
    node = fields.node("cost_usd_per_hour")
    if node is None:
        return None
    try:
        picos = parse_price(node.text if isinstance(node, Scalar) else "")
    except ValueError as error:
        fields.wrong("cost_usd_per_hour", "a decimal of US dollars, zero or more, such as 2.49", str(error))
        return None
    if picos > MOST_HOURLY_USD * PICOS_PER_USD:
        fields.wrong("cost_usd_per_hour", f"at most ${MOST_HOURLY_USD}")
        return None
    return picos
