"""Reading the entry of a model."""

import re
from typing import get_args

from gateway.catalog.document import Scalar, kind_of
from gateway.catalog.fields import Fields
from gateway.catalog.model import ChargeWhen, Model, OutcomePolicy, Parameter, Pick, Upstream, Weights
from gateway.catalog.names import ALIAS_NAME, PARAMETER_NAME
from gateway.catalog.parameters import PARAMETER_TYPES
from gateway.catalog.problems import Report
from gateway.catalog.routes import read_routes
from gateway.contract.tasks import TASKS

CHARGES: tuple[ChargeWhen, ...] = get_args(ChargeWhen)
MAX_DEADLINE_S = 7 * 86_400
MAX_CONTEXT = 100_000_000

MODEL_FIELDS = tuple(
    field
    for name in Model.__struct_fields__
    if name not in ("name", "id")
    for field in ((name, "minimum_usd") if name == "price" else (name,))
)
PARAMETER_FIELDS = Parameter.__struct_fields__
WEIGHTS_FIELDS = Weights.__struct_fields__
MOST_ALIASES = 16

_BILLIONS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def read_model(name: str, fields: Fields, upstreams: dict[str, Upstream], report: Report) -> Model:
    """Read a model, but for its price. What is wrong is reported."""
    fields.known(MODEL_FIELDS)
    options = fields.group("options")
    return Model(
        name=name,
        tasks=fields.words("tasks", TASKS),
        description=fields.text("description"),
        parameters={key: _parameter(key, line, one, report) for key, line, one in fields.named("parameters")},
        routes=read_routes(fields, upstreams),
        aliases=_aliases(fields),
        weights=_weights(fields),
        picks=_picks(fields),
        outcome=_outcome(fields),
        deadline_s=fields.whole("deadline_s", 600, 1, MAX_DEADLINE_S),
        context_tokens=fields.whole("context_tokens", 0, 0, MAX_CONTEXT),
        max_output_tokens=fields.whole("max_output_tokens", 0, 0, 1_000_000),
        prompt_overhead_tokens=fields.whole("prompt_overhead_tokens", 0, 0, 100_000),
        image_tokens=fields.whole("image_tokens", 0, 0, 1_000_000),
        audio_tokens_per_s=fields.whole("audio_tokens_per_s", 0, 0, 10_000),
        source=fields.text("source", ""),
        options=fields.plain("options") if options else {},
    )


def _parameter(name: str, line: int, fields: Fields, report: Report) -> Parameter:
    fields.known(PARAMETER_FIELDS)
    PARAMETER_NAME.check(report, line, name, fields.path)
    choices = fields.plain("choices")
    if choices is not None and not (isinstance(choices, list) and choices):
        fields.wrong("choices", "a list of values")
    return Parameter(
        type=fields.word("type", PARAMETER_TYPES) or "string",
        default=fields.plain("default"),
        minimum=fields.number("minimum"),
        maximum=fields.number("maximum"),
        choices=tuple(choices) if isinstance(choices, list) else (),
        required=fields.flag("required"),
        url=fields.flag("url"),
        priced=fields.flag("priced"),
        description=fields.text("description", ""),
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


def _aliases(fields: Fields) -> tuple[str, ...]:
    found: list[str] = []
    for node, path in fields.items("aliases", "a list of names, such as `- owner/name`"):
        name = node.text if isinstance(node, Scalar) else ""
        if not ALIAS_NAME.fits(name):
            fields.wrong_at(node, path, f"a name of at most {ALIAS_NAME.most} {ALIAS_NAME.words}", kind_of(node))
        found.append(name)
    if len(found) > MOST_ALIASES:
        fields.wrong("aliases", f"at most {MOST_ALIASES} names", str(len(found)))
    return tuple(found)


def _weights(fields: Fields) -> Weights:
    group = fields.group("weights")
    if group is None:
        return Weights()
    group.known(WEIGHTS_FIELDS)
    billions = group.text("parameters_b", "")
    if billions and not _BILLIONS.fullmatch(billions):
        group.wrong("parameters_b", "billions of parameters as a decimal, such as 7.6")
    return Weights(
        repository=group.text("repository", ""), parameters_b=billions, precision=group.text("precision", "")
    )
