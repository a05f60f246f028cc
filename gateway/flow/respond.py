"""Step 8: what may be told the caller, after the charge has committed."""

import re

import msgspec

from gateway.contract.events import Output
from gateway.contract.ids import admitted_ms
from gateway.contract.inputs import INPUT_TYPES
from gateway.contract.phases import Phases
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from gateway.errors import Conflict, DeadlineExceeded, EngineFailed, FaregateError, InvalidRequest, Unavailable
from gateway.flow.call import CHOICE_NOTE
from gateway.flow.follow import Finished

_WORDS: dict[Reason, str] = {
    "engine_error": "The engine could not finish this request.",
    "engine_lost": "The engine stopped while it ran this request.",
    "refused_by_engine": "The engine cannot take this input.",
    "worker_lost": "No worker could finish this request; it was tried as often as allowed.",
    "gateway_lost": "The gateway that held this request is gone.",
    "client_gone": "The caller left before the end.",
    "cancelled_by_caller": "The request was cancelled.",
    "deadline": "The deadline passed before there was an answer.",
    "queue_lost": "The queue was away for too long; nothing was charged.",
    "upstream_error": "The upstream could not finish this request.",
    "upstream_timeout": "The upstream did not answer in time.",
    "upstream_limited": "The upstream takes no more requests at the moment. Try again later.",
    "upstream_unknown": "It is unknown whether the upstream took this request, so it was not sent again.",
    "blocked": "The model will not serve this content.",
}

_FIELD = re.compile(r"((\w+)(?:\[\d+\])?): ")
"""How an engine's refusal begins where it is about one field."""
_FIELDS = {name for kind in INPUT_TYPES.values() for name in kind.__struct_fields__}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A finished request as every API family tells it."""

    id: str
    model: str
    created_s: int
    outcome: Outcome
    output: Output | None
    units: Units
    phases: Phases
    total_us: int
    charge_nanos: int
    hold_nanos: int
    price_version: int
    attempt: int
    choice: str = ""
    """What `auto` chose and why, in JSON; empty where the caller named the model."""


def respond(finished: Finished, total_us: int) -> Answer:
    """Make the answer of a request that succeeded. Raises the error of one that did not."""
    settled = finished.settled
    if settled.outcome != "succeeded":
        raise failure(settled.id, settled.reason, finished.ended.detail if finished.ended else "")
    routed = finished.enqueued.admitted.routed
    price = finished.ended.price if finished.ended else routed.quoted.resolved.price.id
    return Answer(
        id=settled.id,
        model=routed.model_at(price),
        created_s=admitted_ms(settled.id) // 1000,
        outcome=settled.outcome,
        output=finished.ended.output if finished.ended else None,
        units=settled.units,
        phases=settled.phases,
        total_us=total_us,
        charge_nanos=settled.charge_nanos,
        hold_nanos=settled.hold_nanos,
        price_version=price,
        attempt=settled.attempt,
        choice=routed.quoted.resolved.call.notes.get(CHOICE_NOTE, ""),
    )


def failure(request_id: str, reason: Reason, detail: str = "") -> FaregateError:
    """Make the error that stands for an end other than success."""
    message = detail or _WORDS.get(reason, "The request did not finish.")
    if reason == "refused_by_engine":
        named = _FIELD.match(message)
        param = named[1] if named and named[2] in _FIELDS else None
        return InvalidRequest(message, code=reason, param=param, request_id=request_id)
    if reason == "blocked":
        return InvalidRequest(message, code=reason, request_id=request_id)
    if reason in ("deadline", "upstream_timeout"):
        return DeadlineExceeded(message, code=None if reason == "deadline" else reason, request_id=request_id)
    if reason in ("cancelled_by_caller", "client_gone"):
        return Conflict(message, code="cancelled", request_id=request_id)
    if reason in ("queue_lost", "gateway_lost", "upstream_limited"):
        return Unavailable(message, code=reason, request_id=request_id)
    return EngineFailed(message, code=reason, request_id=request_id)
