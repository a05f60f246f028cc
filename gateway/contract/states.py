"""How a request stands, how it ended, and why."""

from typing import Literal, get_args

Status = Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
"""What a caller reads: two open states, four final ones."""

Outcome = Literal["succeeded", "failed", "cancelled", "expired"]
"""The final states. Stored as its position in `OUTCOMES`, so the order never changes."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

Reason = Literal[
    "done",  # the engine finished
    "engine_error",  # the engine failed on this request
    "engine_lost",  # the engine died under this request
    "refused_by_engine",  # the engine found the input unusable
    "worker_lost",  # taken as often as allowed, and no worker finished it
    "gateway_lost",  # nobody holds the payload of a synchronous request any more
    "client_gone",  # the caller left before the end
    "cancelled_by_caller",
    "deadline",
    "queue_lost",  # the queue was away for too long
    "upstream_error",  # the upstream failed, or gave an answer that cannot be read
    "upstream_timeout",  # the upstream did not answer in time
    "upstream_limited",  # the upstream takes no more for now, or the operator's balance there is used up
    "upstream_unknown",  # nobody can tell whether the upstream took the job, so it is not bought a second time
    "blocked",  # the engine or upstream will not serve this content
]
"""Why a request ended as it did. Stands on its usage row."""

REASONS: tuple[Reason, ...] = get_args(Reason)
