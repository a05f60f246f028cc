"""Step 5: the hold. Nothing runs before it has committed, and a refusal leaves nothing behind."""

import msgspec

from gateway.contract.request import Plan, encode_plan
from gateway.errors import FaregateError
from gateway.flow.call import NOTE_PREFIX, Call
from gateway.flow.origin import origin
from gateway.flow.route import Routed, encoded
from gateway.ledger.admission import Admission, Opening, Replay
from gateway.ledger.standing import Standing
from gateway.pricing.terms import terms_json


class Admitted(msgspec.Struct, frozen=True):
    """A routed call that has its id, its hold and its row in Postgres."""

    routed: Routed
    id: str
    input: bytes
    """The input as msgpack, ready for the queue."""
    keep: bool
    deadline_s: int
    standing: Standing = ()
    """The limits of its account and key after it; empty where there are none."""


async def admit(admission: Admission, gateway: str, routed: Routed) -> Admitted | Replay:
    """Set the quoted amount aside and open the request, both in one commit shared with whoever came at the same time.

    A repeat of an idempotent call that has ended answers with its Replay. Raises PaymentRequired, Conflict,
    Unprocessable, Unauthorized (revoked a moment ago) or Unavailable (Postgres away, or the commit unknown).
    """
    resolved = routed.quoted.resolved
    call, model = resolved.call, resolved.model
    keep = call.keep or call.mode == "async" or bool(call.idempotency_key)
    payload = encoded(resolved.input)
    deadline_s = min(call.deadline_s or model.deadline_s, model.deadline_s)
    request_id = resolved.intake.request_id
    opening = Opening(
        id=request_id,
        account_id=resolved.caller.account_id,
        api_key_id=resolved.caller.key_id,
        model_id=model.id,
        price_version_id=resolved.price.id,
        pool=routed.pool.name,
        task=resolved.task,
        hold_nanos=routed.hold_nanos,
        deadline_s=deadline_s,
        gateway=gateway,
        keep=keep,
        idempotency_key=call.idempotency_key or None,
        body_hash=call.body_hash,
        payload=payload if keep else None,
        alternatives=routed.alternatives,
        plan=_plan(routed) if keep else None,
        metadata=_kept_words(call),
        webhook=call.webhook or None,
        webhook_events=call.webhook_events,
        tokens=routed.tokens,
        limited=resolved.caller.limited,
        terms=terms_json(routed.terms),
    )
    answer = await _asked(admission, opening)
    if isinstance(answer, Replay):
        return answer
    return Admitted(routed, request_id, payload, keep, deadline_s, answer)


async def _asked(admission: Admission, opening: Opening) -> Replay | Standing:
    """Ask for admission, and note how the caller's limits stand then for the headers of its answer."""
    try:
        answer = await admission.admit(opening)
    except FaregateError as error:
        origin().standing = error.standing
        raise
    if answer and not isinstance(answer, Replay):
        origin().standing = answer
    return answer


def _kept_words(call: Call) -> dict[str, str] | None:
    """Give what is kept in words beside a request: the caller's metadata, and the notes of its family."""
    notes = {NOTE_PREFIX + name: value for name, value in call.notes.items()}
    return call.metadata | notes or None


def _plan(routed: Routed) -> bytes | None:
    """Write down where a kept request may go; None where it has one way, which its model says."""
    if not routed.legs and not routed.only:
        return None
    return encode_plan(Plan(routed.quoted.resolved.model.name, list(routed.only), list(routed.legs)))
