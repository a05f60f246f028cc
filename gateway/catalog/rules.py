"""What must hold between the fields of a model, its price and its pools."""

from typing import Any

from gateway.catalog.fields import Fields, is_clean
from gateway.catalog.model import Model, Parameter, Pool
from gateway.catalog.parameters import convert_field
from gateway.catalog.problems import shown
from gateway.contract.inputs import INPUT_TYPES, SpeechInput
from gateway.contract.pools import EngineName
from gateway.contract.tasks import TASKS, Task
from gateway.contract.units import Units
from gateway.money import NANOS_PER_USD, round_attos, usd_text
from gateway.pricing.bounds import speech_ms
from gateway.pricing.price import PriceComponent, PricedUnit
from gateway.pricing.rate import line_attos, measured_quantity

ENGINE_TASKS: dict[EngineName, tuple[Task, ...]] = {
    "vllm": ("chat", "completion", "embedding"),
    "speech": ("text-to-speech",),
    "fake": TASKS,
}

_TEXT: tuple[PricedUnit, ...] = ("input_token", "cached_input_token", "output_token", "reasoning_token")
TASK_UNITS: dict[Task, tuple[PricedUnit, ...]] = {
    "chat": ("request", *_TEXT),
    "completion": ("request", *_TEXT),
    "embedding": ("request", "input_token", "cached_input_token"),
    "text-to-speech": ("request", "character", "audio_second"),
}
"""What is measured of each task, and so what it can be priced by."""

NEEDED_FIELDS = ("messages", "prompt", "input")
SWITCHES = ("ignore_eos", "echo")
"""Fields that are false when a caller leaves them out, so that nobody can tell a default is wanted."""

MAX_REQUEST_USD = 1_000_000
"""No request may be priced so that it could cost more: amounts then stay far inside 64 bits."""
MOST_CHARACTERS = 100_000
MOST_TEXTS = 2_048


def check_rules(model: Model, price: tuple[PriceComponent, ...], pools: dict[str, Pool], fields: Fields) -> None:
    """Report what does not fit together in a model whose fields are right by themselves."""
    _check_routes(model, pools, fields)
    _check_price(model, price, fields)
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
        engines.add(pool.engine)
        for task in model.tasks:
            if task not in ENGINE_TASKS[pool.engine]:
                can = ", ".join(ENGINE_TASKS[pool.engine])
                fields.wrong("tasks", f"tasks of the engine {pool.engine} ({can})", task)
    if "vllm" in engines and not model.source:
        fields.wrong("source", "a Hugging Face repository, a local folder, or `tiny:NAME`")
    if model.source and "vllm" not in engines and engines:
        fields.wrong("source", "no source, since the engine is the model")
    if ".." in model.source or not is_clean(model.source):
        fields.wrong("source", "a name or a path without `..`")
    if not model.context_tokens and any(task != "text-to-speech" for task in model.tasks):
        fields.wrong("context_tokens", "the longest input and output together, in tokens")


def _check_price(model: Model, price: tuple[PriceComponent, ...], fields: Fields) -> None:
    units = {unit for task in model.tasks for unit in TASK_UNITS[task]}
    for part in price:
        if part.unit not in units:
            said = ", ".join(unit.replace("_", " ") for task in model.tasks for unit in TASK_UNITS[task])
            fields.wrong("price", f"prices for what its tasks measure ({said})", part.unit.replace("_", " "))
    most = most_nanos(model, price)
    if most > MAX_REQUEST_USD * NANOS_PER_USD:
        fields.wrong("price", f"at most ${MAX_REQUEST_USD} for the largest request", f"${usd_text(most)}")


def most_nanos(model: Model, price: tuple[PriceComponent, ...]) -> int:
    """Price the largest request that the model could ever take."""
    context = model.context_tokens
    units = Units(
        input_tokens=context * (MOST_TEXTS if "embedding" in model.tasks else 1),
        output_tokens=context,
        characters=MOST_CHARACTERS,
        audio_ms=speech_ms(SpeechInput(input="\U0001f600" * MOST_CHARACTERS, speed=0.25)),
    )
    units.cached_tokens, units.reasoning_tokens = units.input_tokens, units.output_tokens
    return round_attos(sum(line_attos(part, measured_quantity(part.unit, units)) for part in price))


def _check_parameter(model: Model, name: str, parameter: Parameter, fields: Fields) -> None:
    tasks = [task for task in model.tasks if name in INPUT_TYPES[task].__struct_fields__]
    if not tasks:
        known = sorted({field for task in model.tasks for field in INPUT_TYPES[task].__struct_fields__})
        fields.wrong_here(f"one of the fields of its tasks ({', '.join(known)})", shown(name))
        return
    if parameter.default is not None and name in (*NEEDED_FIELDS, *SWITCHES):
        fields.wrong("default", f"no default for {name}")
    if parameter.minimum is not None and parameter.maximum is not None and parameter.minimum > parameter.maximum:
        fields.wrong("minimum", f"at most the maximum of {parameter.maximum}")
    for task in tasks:
        for field, value in [("default", parameter.default), *(("choices", choice) for choice in parameter.choices)]:
            if value is None or (field == "choices" and parameter.type in ("array", "object")):
                continue
            _check_value(task, name, field, value, fields)
    _check_default(parameter, fields)


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
