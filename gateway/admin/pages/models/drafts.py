"""The draft of a price as the editor's form and its address hold it, and back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import get_args
from urllib.parse import urlencode

import msgspec

from gateway.admin.pages.models.when_field import read_conditions, when_words
from gateway.catalog.model import Model, Sold
from gateway.catalog.price_rules import TASK_UNITS, price_problems
from gateway.catalog.prices import component, parse_per, per_text, usd_of_row
from gateway.money import parse_usd, usd_text
from gateway.pricing.conditions import Condition
from gateway.pricing.policy import ChargeWhen, OutcomePolicy
from gateway.pricing.price import PriceComponent

BLANKS = 2
"""Empty rows at the end of the form, for new ones."""
MOST_ROWS = 200
CHOICES: tuple[ChargeWhen, ...] = get_args(ChargeWhen)

Items = Sequence[tuple[str, str]]


class DraftRow(msgspec.Struct, kw_only=True):
    """A row of the form, and what it was before."""

    per: str = ""
    usd: str = ""
    when: str = ""
    part: PriceComponent | None = None
    before: int | None = None
    """The picos of the row in force for the same unit under the same conditions."""
    errors: dict[str, str] = {}


class Draft(msgspec.Struct, kw_only=True):
    """The form, read."""

    model: str
    rows: list[DraftRow]
    minimum: str = ""
    price_list: str = ""
    """The name of a list; empty for the list price."""
    at: str = ""
    """An instant as text; empty for now."""
    base: int = 0
    free: bool = False
    outcome: OutcomePolicy = OutcomePolicy()
    sold: Sold = Sold()
    minimum_nanos: int = 0
    valid_from: datetime | None = None
    errors: dict[str, str] = {}
    given: bool = False
    """Whether the address holds a draft; else the form shows what is in force."""

    @property
    def items(self) -> list[tuple[str, str]]:
        """The draft as fields of an address or a form."""
        rows = [
            (name, getattr(row, name)) for row in self.rows if row.per or row.usd for name in ("per", "usd", "when")
        ]
        whole = [("minimum", self.minimum), ("list", self.price_list), ("at", self.at), ("base", str(self.base))]
        policy = [(name, getattr(self.outcome, name)) for name in OutcomePolicy.__struct_fields__]
        return [("model", self.model), *rows, *((name, value) for name, value in whole if value), *policy, *self._free]

    @property
    def query(self) -> str:
        """The draft as the query of an address."""
        return urlencode(self.items)

    @property
    def _free(self) -> list[tuple[str, str]]:
        return [("free", "1")] if self.free else []


def read_draft(items: Items, model: Model, outcome: OutcomePolicy) -> Draft:
    """Read a draft from the fields of an address or a form; what is wrong stands in `errors`, by field.

    `outcome` is the policy in force, which counts where the fields do not name another.
    """
    named = dict(items)
    columns = {name: [value.strip() for field, value in items if field == name] for name in ("per", "usd", "when")}
    rows = [
        DraftRow(per=per, usd=usd, when=when)
        for per, usd, when in zip(*(columns[name] for name in ("per", "usd", "when")), strict=False)
        if per or usd or when
    ][:MOST_ROWS]
    draft = Draft(
        model=model.name,
        rows=rows,
        minimum=named.get("minimum", "").strip(),
        price_list=named.get("list", "").strip(),
        at=named.get("at", "").strip(),
        base=int(named["base"]) if named.get("base", "").isdecimal() and len(named["base"]) < 10 else 0,
        free=named.get("free") == "1",
        outcome=_policy(named, outcome),
        errors={},
        given="per" in named,
    )
    _read(draft, model)
    return draft


def draft_of(sold: Sold, outcome: OutcomePolicy, model: Model, price_list: str, base: int) -> Draft:
    """Show a price as it is, in the form."""
    rows = [
        DraftRow(per=per_text(part), usd=usd_of_row(part), when=when_words(part.when), part=part) for part in sold.rows
    ]
    minimum = usd_text(sold.minimum_nanos) if sold.minimum_nanos else ""
    free = bool(sold.rows) and not sold.minimum_nanos and not any(part.picos for part in sold.rows)
    draft = Draft(
        model=model.name,
        rows=rows,
        minimum=minimum,
        price_list=price_list,
        base=base,
        free=free,
        outcome=outcome,
        errors={},
    )
    draft.sold, draft.minimum_nanos = sold, sold.minimum_nanos
    return draft


def compare(draft: Draft, now: Sold) -> None:
    """Note beside each row what it costs now."""
    known = {(part.unit, part.words): part.picos for part in now.rows}
    for row in draft.rows:
        row.before = known.get((row.part.unit, row.part.words)) if row.part else None


def per_choices(model: Model, draft: Draft) -> list[str]:
    """Give what rows may be for: what the model's tasks measure, and what stands there already."""
    units = dict.fromkeys(unit for task in model.tasks for unit in TASK_UNITS[task])
    known = [per_text(PriceComponent(unit, 0)) for unit in units]
    return list(dict.fromkeys([*known, *(row.per for row in draft.rows if row.per)]))


def _policy(named: Mapping[str, str], now: OutcomePolicy) -> OutcomePolicy:
    """Read what other outcomes than success cost; what is not one of the choices leaves it as it is."""
    given = {name: named.get(name) for name in OutcomePolicy.__struct_fields__}
    return msgspec.structs.replace(now, **{name: value for name, value in given.items() if value in CHOICES})


def _read(draft: Draft, model: Model) -> None:
    parts = []
    for number, row in enumerate(draft.rows):
        row.errors = {}
        row.part = _part(row)
        for name, text in row.errors.items():
            draft.errors[f"{name}-{number}"] = text
        if row.part:
            parts.append(row.part)
    try:
        draft.minimum_nanos = parse_usd(draft.minimum) if draft.minimum else 0
    except ValueError as error:
        draft.errors["minimum"] = f"A decimal of US dollars, such as 0.001: {error}."
    try:
        draft.valid_from = _instant(draft.at)
    except ValueError:
        draft.errors["at"] = "An instant in UTC, such as 2026-12-01 00:00; empty for now."
    draft.sold = Sold(tuple(parts), draft.minimum_nanos)
    if not draft.errors:
        for problem in price_problems(model, draft.sold):
            place = "minimum" if problem.field == "minimum_usd" else "price"
            field = place if problem.row is None else f"{problem.field}-{problem.row}"
            text = f"Expected {problem.expected}, found {problem.found}."
            draft.errors[field] = text
            if problem.row is not None:
                draft.rows[problem.row].errors[problem.field] = text


def _part(row: DraftRow) -> PriceComponent | None:
    unit, count = None, 1
    when: tuple[Condition, ...] = ()
    try:
        unit, count = parse_per(row.per)
    except ValueError as error:
        row.errors["per"] = f"Expected {error}."
    try:
        when = read_conditions(row.when)
    except ValueError as error:
        row.errors["when"] = f"Expected {error}."
    try:
        return component(row.usd, unit, count, when) if unit and not row.errors else None
    except ValueError as error:
        row.errors["usd"] = f"A decimal of US dollars, zero or more, such as 0.10: {error}."
        return None


def _instant(text: str) -> datetime | None:
    if not text:
        return None
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at
