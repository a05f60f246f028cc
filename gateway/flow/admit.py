"""Step 5: the hold. Nothing runs before it has committed, and a refusal leaves nothing behind."""

import msgspec

from gateway.contract.ids import new_request_id
from gateway.contract.inputs import Input
from gateway.contract.request import encode_input
from gateway.errors import InvalidRequest
from gateway.flow.route import Routed
from gateway.ledger.admission import Admission, Opening, Replay


class Admitted(msgspec.Struct, frozen=True):
    """A routed call that has its id, its hold and its row in Postgres."""

    routed: Routed
    id: str
    input: bytes
    """The input as msgpack, ready for the queue."""
    keep: bool
    deadline_s: int


async def admit(admission: Admission, gateway: str, routed: Routed) -> Admitted | Replay:
    """Set the quoted amount aside and open the request, both in one commit shared with whoever came at the same time.

    A repeat of an idempotent call that has ended answers with its Replay. Raises PaymentRequired, Conflict,
    Unprocessable, Unauthorized (revoked a moment ago) or Unavailable (Postgres away, or the commit unknown).
    """
    resolved = routed.quoted.resolved
    call, model = resolved.call, resolved.model
    keep = call.keep or call.mode == "async" or bool(call.idempotency_key)
    encoded = _encoded(resolved.input)
    deadline_s = min(call.deadline_s or model.deadline_s, model.deadline_s)
    request_id = new_request_id()
    replay = await admission.admit(
        Opening(
            id=request_id,
            account_id=resolved.caller.account_id,
            api_key_id=resolved.caller.key_id,
            model_id=model.id,
            price_version_id=resolved.price.id,
            pool=routed.pool.name,
            task=resolved.task,
            hold_nanos=routed.quoted.quote.nanos,
            deadline_s=deadline_s,
            gateway=gateway,
            keep=keep,
            idempotency_key=call.idempotency_key or None,
            body_hash=call.body_hash,
            payload=encoded if keep else None,
            metadata=call.metadata or None,
        )
    )
    return replay or Admitted(routed, request_id, encoded, keep, deadline_s)


def _encoded(value: Input) -> bytes:
    try:
        return encode_input(value)
    except OverflowError:  # of JSON's numbers in schemas and tools, the queue carries those of 64 bits
        raise InvalidRequest("A number in the input does not fit into 64 bits.") from None
