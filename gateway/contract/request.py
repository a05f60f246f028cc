"""A request as a worker receives it."""

import msgspec

from gateway.contract.events import Step
from gateway.contract.inputs import INPUT_TYPES, Input
from gateway.contract.tasks import Task


class Leg(msgspec.Struct, frozen=True, array_like=True):
    """A way that a request may still go where an earlier one failed: another pool, and maybe another model."""

    pool: str
    model: str
    price: int
    """The price version of that model, pinned at admission, too."""
    input: bytes = b""
    """The input with that model's defaults; empty where it is the same as the request's."""
    only: list[str] = []
    """As in `Request`."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """One admitted request, as it lies in a pool's queue. The field order is the wire format: append, never reorder."""

    id: str
    """`req_` and 32 hexadecimal digits."""
    account: int
    """Who pays: the unit of fairness in the queue."""
    model: str
    task: Task
    input: bytes
    """The input struct of the task, as msgpack."""
    price: int
    """The price version pinned at admission. Workers echo it in `Ended`; settlement checks it."""
    reply: str = ""
    """The reply channel of the gateway that waits; empty when none does."""
    stream: bool = False
    """Whether deltas are wanted as they come."""
    keep: bool = False
    """Whether output and events are kept for a later reader (asynchronous and idempotent requests)."""
    enqueued_us: int = 0
    """Unix microseconds when the gateway put it into the queue."""
    deadline_ms: int = 0
    """Unix milliseconds after which nobody wants the answer."""
    parent: str = ""
    """The workflow's request that this is a step of; empty for what was admitted.

    A step has no hold and no row in Postgres, and is not charged: its end, output and all, stands in its event log.
    """
    only: list[str] = []
    """The upstreams that may serve it, the wanted ones first; empty where the model's targets decide."""
    legs: list[Leg] = []
    """The ways that are left where this one fails, in order."""
    steps: list[Step] = []
    """What was tried in other pools before it was handed on."""


class Plan(msgspec.Struct, frozen=True, array_like=True):
    """How a kept request may be served, as Postgres holds it for a queue that was lost."""

    model: str
    only: list[str] = []
    legs: list[Leg] = []


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Request)
_PLAN = msgspec.msgpack.Decoder(Plan)
_INPUTS = {task: msgspec.msgpack.Decoder(kind) for task, kind in INPUT_TYPES.items()}


def encode_plan(plan: Plan) -> bytes:
    """Encode the plan of a kept request."""
    return _ENCODER.encode(plan)


def decode_plan(data: bytes) -> Plan:
    """Decode the plan of a kept request. Raises msgspec.ValidationError."""
    return _PLAN.decode(data)


def encode_input(value: Input) -> bytes:
    """Encode an input struct for `Request.input`."""
    return _ENCODER.encode(value)


def decode_input(request: Request) -> Input:
    """Decode the input of a request. Raises msgspec.ValidationError when it does not fit its task."""
    return _INPUTS[request.task].decode(request.input)


def encode_request(request: Request) -> bytes:
    """Encode a request for its pool's queue."""
    return _ENCODER.encode(request)


def decode_request(data: bytes) -> Request:
    """Decode a request from its pool's queue. Raises msgspec.ValidationError."""
    return _DECODER.decode(data)
