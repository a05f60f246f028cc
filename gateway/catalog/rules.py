"""What must hold between the fields of a model, its price and its pools."""

from typing import Any

from gateway.catalog.fields import Fields, is_clean
from gateway.catalog.kinds import FIELD_MEDIA
from gateway.catalog.model import Catalog, Model, Parameter, Pool, Sold
from gateway.catalog.parameters import TEXT_TASKS, convert_field, task_fields
from gateway.catalog.price_rules import price_problems
from gateway.catalog.problems import shown
from gateway.catalog.routes import check_upstream_routes
from gateway.catalog.vendor import is_of_type
from gateway.contract.pools import EngineName
from gateway.contract.tasks import TASKS, Task

_IMAGES: tuple[Task, ...] = (
    "text-to-image",
    "image-edit",
    "image-blend",
    "image-relight",
    "image-restyle",
    "image-upscale",
)
_VIDEOS: tuple[Task, ...] = ("text-to-video", "image-to-video", "video-upscale")

ENGINE_TASKS: dict[EngineName, tuple[Task, ...]] = {
    "vllm": ("chat", "completion", "embedding", "rerank"),
    "speech": ("text-to-speech", "voice-clone", "music", "speech-to-text"),
    "diffusers": (*_IMAGES, *_VIDEOS),
    "triton": ("chat", "completion", "embedding", "text-to-image"),
    "workflow": TASKS,
    "fake": TASKS,
    "upstream": TASKS,
}
"""What can be asked of an engine; of an upstream, its protocol says it."""

NEEDS_SOURCE: frozenset[EngineName] = frozenset({"vllm", "diffusers"})
TAKES_SOURCE: frozenset[EngineName] = frozenset({"speech", "triton"})
NEEDED_FIELDS = ("messages", "prompt", "input", "query", "documents")
SWITCHES = ("ignore_eos", "echo", "translate")
"""Fields that are false when a caller leaves them out, so that nobody can tell a default is wanted."""

RESERVED = frozenset({
    "extra", "max_price", "metadata", "model", "models", "priority", "provider", "store", "stream", "user"
})  # fmt: skip
"""Names of fields beside the input in OpenAI bodies, where no model's own field could be told from them."""


def check_rules(model: Model, sold: Sold, catalog: Catalog, fields: Fields) -> None:
    """Report what does not fit together in a model whose fields are right by themselves."""
    _check_routes(model, catalog.pools, fields)
    check_upstream_routes(model, catalog.upstreams, fields)
    check_price(model, sold, fields)
    _check_costs(model, fields)
    for name, parameter in model.parameters.items():
        group = fields.group("parameters")
        one = group.group(name) if group else None
        if one is not None:
            _check_parameter(model, name, parameter, one)
    limit = model.parameters.get("max_tokens")
    if limit and limit.maximum is not None and limit.default is None and not model.max_output_tokens:
        fields.wrong("max_output_tokens", "an output for calls that name none, since max_tokens has a maximum", "0")
    if model.context_tokens and model.max_output_tokens > model.context_tokens:
        fields.wrong("max_output_tokens", f"at most the context of {model.context_tokens} tokens")
    bad = next((key for key in model.options if not key.isidentifier()), None)
    if bad is not None:
        fields.wrong("options", "names of options", shown(bad))


def _check_routes(model: Model, pools: dict[str, Pool], fields: Fields) -> None:
    engines: set[EngineName] = set()
    for route in model.routes:
        pool = pools.get(route.pool)
        if pool is None:
            fields.wrong("routes", f"one of the pools {', '.join(pools) or '(there are none)'}", shown(route.pool))
            continue
        if pool.engine == "upstream" and not route.upstream:
            fields.wrong("routes", "a pool of our own, or `upstream` with the name of one", shown(route.pool))
        engines.add(pool.engine)
        for task in model.tasks:
            if task not in ENGINE_TASKS[pool.engine]:
                can = ", ".join(ENGINE_TASKS[pool.engine])
                fields.wrong("tasks", f"tasks of the engine {pool.engine} ({can})", task)
    if engines & NEEDS_SOURCE and not model.source:
        fields.wrong("source", "a Hugging Face repository, a local folder, or `tiny:NAME`")
    if model.source and engines and not engines & (NEEDS_SOURCE | TAKES_SOURCE):
        fields.wrong("source", "no source, since the engine is the model")
    if ".." in model.source or not is_clean(model.source):
        fields.wrong("source", "a name or a path without `..`")
    if not model.context_tokens and any(task in TEXT_TASKS for task in model.tasks):
        fields.wrong("context_tokens", "the longest input and output together, in tokens")


def check_price(model: Model, sold: Sold, fields: Fields) -> None:
    """Report what does not fit together in a price of a model, which stands in `price` and `minimum_usd`."""
    rows = list(fields.items("price", "a list"))
    for problem in price_problems(model, sold):
        if problem.row is None:
            fields.wrong(problem.field, problem.expected, problem.found)
        else:
            node, path = rows[problem.row]
            fields.wrong_at(node, f"{path}.{problem.field}", problem.expected, problem.found)


def _check_costs(model: Model, fields: Fields) -> None:
    for route in model.routes:
        for problem in price_problems(model, Sold(route.cost)):
            fields.wrong("routes", problem.expected, problem.found)


def _check_parameter(model: Model, name: str, parameter: Parameter, fields: Fields) -> None:
    tasks = [task for task in model.tasks if name in task_fields(task)]
    if not tasks and not any(route.upstream for route in model.routes):
        known = sorted({field for task in model.tasks for field in task_fields(task)})
        fields.wrong_here(f"one of the fields of its tasks ({', '.join(known)})", shown(name))
        return
    if name in RESERVED:
        fields.wrong_here("a name that callers do not use for something else", shown(name))
    if parameter.url and (tasks or parameter.type not in ("string", "array")):
        fields.wrong("url", "a string or an array, and no field of its tasks")
    if name in FIELD_MEDIA and tasks and parameter.type != "array" and (parameter.choices or _limited(parameter)):
        fields.wrong_here("no choices, minimum or maximum for a file", shown(name))
    if parameter.default is not None and name in (*NEEDED_FIELDS, *SWITCHES):
        fields.wrong("default", f"no default for {name}")
    if parameter.minimum is not None and parameter.maximum is not None and parameter.minimum > parameter.maximum:
        fields.wrong("minimum", f"at most the maximum of {parameter.maximum}")
    for task in tasks:
        for field, value in [("default", parameter.default), *(("choices", choice) for choice in parameter.choices)]:
            if value is None or (field == "choices" and parameter.type in ("array", "object")):
                continue
            _check_value(task, name, field, value, fields)
    if not tasks:
        _check_own(parameter, fields)
    _check_default(parameter, fields)


def _limited(parameter: Parameter) -> bool:
    return parameter.minimum is not None or parameter.maximum is not None


def _check_own(parameter: Parameter, fields: Fields) -> None:
    """Hold the default and the choices of a field that is the model's alone against its own type."""
    for field, value in [("default", parameter.default), *(("choices", choice) for choice in parameter.choices)]:
        if value is None or (field == "choices" and parameter.type in ("array", "object")):
            continue
        if not is_of_type(parameter.type, value):
            fields.wrong(field, f"a value of the type {parameter.type}", shown(value))


def _check_value(task: Task, name: str, field: str, value: Any, fields: Fields) -> None:
    try:
        convert_field(task, name, value)
    except ValueError as error:
        fields.wrong(field, f"what {task} takes as {name} ({error})", shown(value))


def _check_default(parameter: Parameter, fields: Fields) -> None:
    """Hold a default against the parameter's own limits."""
    value = parameter.default
    if value is None:
        return
    if parameter.choices and parameter.type not in ("array", "object") and value not in parameter.choices:
        fields.wrong("default", "one of the choices")
    size = len(value) if isinstance(value, str | list) else value
    if isinstance(size, int | float) and (
        (parameter.minimum is not None and size < parameter.minimum)
        or (parameter.maximum is not None and size > parameter.maximum)
    ):
        fields.wrong("default", "a default within minimum and maximum")
