"""What the words of an upstream say of a job or call that it failed: limited, blocked, too late, or simply failed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.contract.states import Reason
from workers.engine import RefusedInput
from workers.engines.upstream.failures import UpstreamFailed, blocked, clean, is_blocked

_UNPAID = re.compile(
    r"insufficient[ _-](?:credit|balance|fund|quota)|out of credit|add more credits|not enough credit|payment required"
    r"|arrears|billing|resource pack|balance (?:is )?(?:not|too|insufficient)|quota[ _]?exceeded",
    re.IGNORECASE,
)
_LIMITED = re.compile(
    r"rate[ _-]?limit|too many (?:requests|concurrent)|quota|concurrency|\bRPM\b|\bTPM\b|overloaded|throttled"
    r"|at capacity|out of capacity",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    r"generation rejected|rejected by|prohibited|inappropriate|violat(?:e|es|ed|ion)|usage polic|community guideline"
    r"|copyright|unsafe|sexual|public figure|celebrit|bad_prompt|bad_composition",
    re.IGNORECASE,
)
_LATE = re.compile(r"time[ds]?[ _-]?out|deadline exceeded", re.IGNORECASE)


def reason_in(words: str) -> Reason:
    """Read why a job failed from the upstream's words."""
    words = words[:4096]
    if _UNPAID.search(words) or _LIMITED.search(words):
        return "upstream_limited"
    if is_blocked(words) or _REJECTED.search(words):
        return "blocked"
    return "upstream_timeout" if _LATE.search(words) else "upstream_error"


def limited(detail: str, retry_after_s: float | None = None) -> UpstreamFailed:
    """Make the error for an upstream that takes no more for now, or whose account there is used up."""
    unpaid = _UNPAID.search(detail) is not None
    text = (
        "The provider does not serve this account now."
        if unpaid
        else "The provider takes no more calls for the moment."
    )
    return UpstreamFailed(text, reason="upstream_limited", detail=detail, retry_after_s=retry_after_s, wide=unpaid)


def failed(words: str, *, sent: bool = True) -> UpstreamFailed:
    """Make the error for a call that an upstream took and failed, by its words."""
    reason = reason_in(words)
    if reason == "blocked":
        return blocked(words)
    if reason == "upstream_limited":
        return limited(clean(words))
    text = "The provider took too long." if reason == "upstream_timeout" else "The provider failed."
    return UpstreamFailed(text, reason=reason, detail=clean(words), sent=sent)


@contextmanager
def buying(*signs: str) -> Iterator[None]:
    """Read a refusal for what is missing (status 404, or these signs) as what it means where something is bought.

    It is no fault of the input: the upstream does not have the model, at least not for this account.
    """
    try:
        yield
    except RefusedInput as error:
        notes = " ".join(getattr(error, "__notes__", ()))
        if any(sign in notes for sign in ("HTTP 404", *signs)):
            text = "The provider does not have this model for this account."
            raise UpstreamFailed(text, detail=notes) from None
        raise
