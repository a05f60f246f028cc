"""From the text of a catalog to its types. Everything that is wrong is reported at once."""

import re
from pathlib import Path
from typing import get_args

from gateway.catalog.document import Mapping, Node, Scalar, kind_of, parse
from gateway.catalog.fields import Fields
from gateway.catalog.model import Catalog, ChargeWhen, Model, OutcomePolicy, Parameter, Pick, Pool, Route
from gateway.catalog.parameters import PARAMETER_TYPES
from gateway.catalog.prices import component, parse_per
from gateway.catalog.problems import CatalogError, Problem, Report, shown
from gateway.catalog.rules import check_rules
from gateway.contract.pools import EngineName
from gateway.contract.tasks import TASKS
from gateway.pricing.price import PriceComponent

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
CHARGES: tuple[ChargeWhen, ...] = get_args(ChargeWhen)
MAX_DEADLINE_S = 7 * 86_400
MAX_CONTEXT = 100_000_000

TOP_FIELDS = ("pools", "models")
POOL_FIELDS = ("engine", "workers", "backlog", "lease_ms", "attempts")
MODEL_FIELDS = tuple(name for name in Model.__struct_fields__ if name not in ("name", "id"))
PARAMETER_FIELDS = Parameter.__struct_fields__
PRICE_FIELDS = ("usd", "per")

MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]*(/[A-Za-z0-9][A-Za-z0-9._:@-]*)*")
POOL_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
PARAMETER_NAME = re.compile(r"[a-z][a-z0-9_]*")


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
    models: dict[str, Model] = {}
    prices: dict[str, tuple[PriceComponent, ...]] = {}
    for name, line, pool in fields.named("pools"):
        _check_name(report, line, name, "pools", POOL_NAME, 63, "lower-case letters, digits and `-`")
        pools[name] = _pool(name, pool)
    for name, line, entry in fields.named("models"):
        _check_name(report, line, name, "models", MODEL_NAME, 128, "letters, digits and `._:@-/`")
        before = len(report.problems)
        prices[name] = _prices(entry, report)
        models[name] = _model(name, entry, report)
        if len(report.problems) == before:
            check_rules(models[name], prices[name], pools, entry)
    return Catalog(pools=pools, models=models, prices=prices)


def _check_name(report: Report, line: int, name: str, field: str, form: re.Pattern[str], most: int, of: str) -> None:
    if len(name) > most or not form.fullmatch(name) or ".." in name:
        report.add(line, field, f"a name of at most {most} {of}", shown(name))


def _pool(name: str, fields: Fields) -> Pool:
    fields.known(POOL_FIELDS)
    return Pool(
        name=name,
        engine=fields.word("engine", ENGINES) or "fake",
        workers=fields.whole("workers", 1, 0, 64),
        backlog=fields.whole("backlog", 10_000, 1, 1_000_000),
        lease_ms=fields.whole("lease_ms", 10_000, 500, 600_000),
        attempts=fields.whole("attempts", 3, 1, 100),
    )


def _model(name: str, fields: Fields, report: Report) -> Model:
    fields.known(MODEL_FIELDS)
    options = fields.group("options")
    return Model(
        name=name,
        tasks=fields.words("tasks", TASKS),
        description=fields.text("description"),
        parameters={key: _parameter(key, line, one, report) for key, line, one in fields.named("parameters")},
        routes=_routes(fields, report),
        picks=_picks(fields),
        outcome=_outcome(fields),
        deadline_s=fields.whole("deadline_s", 600, 1, MAX_DEADLINE_S),
        context_tokens=fields.whole("context_tokens", 0, 0, MAX_CONTEXT),
        max_output_tokens=fields.whole("max_output_tokens", 0, 0, 1_000_000),
        prompt_overhead_tokens=fields.whole("prompt_overhead_tokens", 0, 0, 100_000),
        source=fields.text("source", ""),
        options=fields.plain("options") if options else {},
    )


def _prices(fields: Fields, report: Report) -> tuple[PriceComponent, ...]:
    found: dict[str, PriceComponent] = {}
    for node, path in fields.items("price", "a list of rows such as `- {usd: 0.10, per: 1M input tokens}`"):
        row = fields.of(node, path)
        if row is None:
            continue
        row.known(PRICE_FIELDS)
        part = _price_row(row)
        if part is None:
            continue
        if part.unit in found:
            report.add(row.line, path, "each unit once", f"a second price per {part.unit.replace('_', ' ')}")
        found[part.unit] = part
    return tuple(found.values())


def _price_row(row: Fields) -> PriceComponent | None:
    usd = row.node("usd")
    if not isinstance(usd, Scalar):
        row.wrong("usd", "a decimal of US dollars, such as 0.10")
        return None
    try:
        unit, count = parse_per(row.text("per", "request"))
    except ValueError as error:
        row.wrong("per", str(error))
        return None
    try:
        return component(usd.text, unit, count)
    except ValueError as error:
        row.wrong("usd", "a decimal of US dollars, zero or more, such as 0.10", str(error))
        return None


def _parameter(name: str, line: int, fields: Fields, report: Report) -> Parameter:
    fields.known(PARAMETER_FIELDS)
    _check_name(report, line, name, fields.path, PARAMETER_NAME, 64, "lower-case letters, digits and `_`")
    choices = fields.plain("choices")
    if choices is not None and not (isinstance(choices, list) and choices):
        fields.wrong("choices", "a list of values")
    return Parameter(
        type=fields.word("type", PARAMETER_TYPES) or "string",
        default=fields.plain("default"),
        minimum=fields.number("minimum"),
        maximum=fields.number("maximum"),
        choices=tuple(choices) if isinstance(choices, list) else (),
        priced=fields.flag("priced"),
        description=fields.text("description", ""),
    )


def _routes(fields: Fields, report: Report) -> tuple[Route, ...]:
    expected = "a list of pools, such as `- pool: gpu`"
    routes: list[Route] = []
    for node, path in fields.items("routes", expected):
        route = _route(node, path, fields)
        if any(route.pool == known.pool for known in routes):
            report.add(node.line, path, "each pool once", shown(route.pool))
        routes.append(route)
    if not routes:
        fields.wrong("routes", expected)
    return tuple(routes)


def _route(node: Node, path: str, parent: Fields) -> Route:
    fields = parent.of(node, path)
    if fields is None:
        return Route(pool="")
    fields.known(Route.__struct_fields__)
    return Route(
        pool=fields.text("pool"), order=fields.whole("order", 0, 0, 100), weight=fields.whole("weight", 1, 1, 1000)
    )


def _picks(fields: Fields) -> tuple[Pick, ...]:
    picks: list[Pick] = []
    for node, path in fields.items("picks", "a list of rows with `role`, `use` and `line`"):
        row = fields.of(node, path)
        if row is not None:
            row.known(Pick.__struct_fields__)
            picks.append(Pick(role=row.text("role"), use=row.text("use"), line=row.text("line")))
    return tuple(picks)


def _outcome(fields: Fields) -> OutcomePolicy:
    group = fields.group("outcome")
    if group is None:
        return OutcomePolicy()
    group.known(OutcomePolicy.__struct_fields__)
    plain = OutcomePolicy()
    return OutcomePolicy(
        failed=group.word("failed", CHARGES, plain.failed) or plain.failed,
        cancelled=group.word("cancelled", CHARGES, plain.cancelled) or plain.cancelled,
        expired=group.word("expired", CHARGES, plain.expired) or plain.expired,
    )
