"""Step 2: which model is meant, and whether its input fits."""

from collections.abc import Collection
from typing import cast

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.catalog.validate import check_input
from gateway.catalog.vendor import split
from gateway.contract.inputs import INPUT_TYPES, Input
from gateway.contract.tasks import Task
from gateway.errors import Forbidden, InvalidRequest, NotFound, Unavailable, misfit
from gateway.flow.authenticate import Authentic
from gateway.flow.call import Call
from gateway.ledger.keyring import Caller
from gateway.pricing.price import PriceVersion

_DECODERS = {task: msgspec.json.Decoder(kind) for task, kind in INPUT_TYPES.items()}


class Resolved(msgspec.Struct, frozen=True):
    """A call with its model, its task, and an input that fits both."""

    call: Call
    caller: Caller
    model: Model
    price: PriceVersion
    """What the caller's account pays."""
    task: Task
    input: Input


def resolve(snapshot: Snapshot, authentic: Authentic) -> Resolved:
    """Look the model up in the catalog and hold the input against its parameters.

    Raises NotFound for an unknown model, Forbidden for one that the key may not call, InvalidRequest where task or
    input do not fit, and Unavailable for a model without a price: it refuses to run, it never runs for free.
    """
    call = authentic.call
    model = snapshot.model(call.model)
    if model is None and snapshot.revision < 0:
        raise Unavailable("The catalog could not be read yet; try again.", retry_after_s=1.0)
    if model is None:
        raise NotFound(
            "There is no such model. GET /v1/models lists those that can be called.",
            code="model_not_found",
            param="model",
        )
    if not may_call(authentic.caller, model):
        raise Forbidden(
            "This key may not call this model. GET /v1/models lists those that it may.",
            code="model_not_allowed",
            param="model",
        )
    price = snapshot.price_for(model, authentic.caller.price_list_id)
    if price is None:
        raise Unavailable(
            "This model has no price yet, so it cannot be called.", code="model_not_for_sale", param="model"
        )
    task, value = fitted(call, model)
    return Resolved(call, authentic.caller, model, price, task, value)


def may_call(caller: Caller, model: Model) -> bool:
    """Say whether a caller's key may call a model."""
    return caller.permits.names is None or caller.permits.allow_model((model.name, *model.aliases))


def fitted(call: Call, model: Model) -> tuple[Task, Input]:
    """Give the task and the input that a call means to a model, with its defaults. Raises InvalidRequest."""
    task, value = input_of(call, model)
    return task, check_input(model, value)


def input_of(call: Call, model: Model) -> tuple[Task, Input]:
    """Give the task and the input that a call means to a model, before its defaults. Raises InvalidRequest."""
    if call.task is None:
        return _fitting(cast(msgspec.Raw, call.input), _wanted(call, model), model.vendor_fields)
    if call.task not in model.tasks:
        for task, value in call.others:
            if task in model.tasks:
                return task, value
        raise InvalidRequest(
            f"This model does {' and '.join(model.tasks)}, not {call.task}.", code="task_not_supported", param="model"
        )
    return call.task, cast(Input, call.input)


def _wanted(call: Call, model: Model) -> tuple[Task, ...]:
    """Give the tasks that a native input may mean: the one that its caller names, else all of the model's."""
    task = call.wish.task if call.wish is not None else None
    if task is None:
        return model.tasks
    if task not in model.tasks:
        raise InvalidRequest(
            f"This model does {' and '.join(model.tasks)}, not {task}.", code="task_not_supported", param="task"
        )
    return (task,)


def _fitting(raw: msgspec.Raw, tasks: tuple[Task, ...], own: Collection[str]) -> tuple[Task, Input]:
    """Read a native input as the first of these tasks that it fits, beside the fields that are the model's own."""
    raw, extra = split(raw, own) if own else (raw, {})
    first: msgspec.ValidationError | None = None
    for task in tasks:
        try:
            value = _DECODERS[task].decode(raw)
            return task, msgspec.structs.replace(value, extra=(value.extra or {}) | extra) if extra else value
        except msgspec.ValidationError as error:
            first = first or error
    refusal = misfit(str(first), "input")
    refusal.message = f"The input does not fit task {tasks[0]}: {first}"
    raise refusal
