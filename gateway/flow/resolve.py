"""Step 2: which model is meant, and whether its input fits."""

from typing import cast

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.catalog.validate import check_input
from gateway.contract.inputs import INPUT_TYPES, Input
from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest, NotFound, Unavailable
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
    task: Task
    input: Input


def resolve(snapshot: Snapshot, authentic: Authentic) -> Resolved:
    """Look the model up in the catalog and hold the input against its parameters.

    Raises NotFound for an unknown model, InvalidRequest where task or input do not fit, and
    Unavailable for a model without a price: it refuses to run, it never runs for free.
    """
    call = authentic.call
    model = snapshot.models.get(call.model)
    if model is None and snapshot.revision < 0:
        raise Unavailable("The catalog could not be read yet; try again.", retry_after_s=1.0)
    if model is None:
        raise NotFound(
            "There is no such model. GET /v1/models lists those that can be called.",
            code="model_not_found",
            param="model",
        )
    if model.price is None:
        raise Unavailable(
            "This model has no price yet, so it cannot be called.", code="model_not_for_sale", param="model"
        )
    task, value = _input_of(call, model)
    return Resolved(call, authentic.caller, model, model.price, task, check_input(model, value))


def _input_of(call: Call, model: Model) -> tuple[Task, Input]:
    if call.task is None:
        return _fitting(cast(msgspec.Raw, call.input), model)
    if call.task not in model.tasks:
        raise InvalidRequest(
            f"This model does {' and '.join(model.tasks)}, not {call.task}.", code="task_not_supported", param="model"
        )
    return call.task, cast(Input, call.input)


def _fitting(raw: msgspec.Raw, model: Model) -> tuple[Task, Input]:
    """Read a native input as the first of the model's tasks that it fits."""
    first: msgspec.ValidationError | None = None
    for task in model.tasks:
        try:
            return task, _DECODERS[task].decode(raw)
        except msgspec.ValidationError as error:
            first = first or error
    raise InvalidRequest(f"The input does not fit task {model.tasks[0]}: {first}", param="input")
