"""What Replicate's API takes."""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gateway.db.webhooks import WebhookKind
from gateway.errors import InvalidRequest
from gateway.flow.call import Priority
from gateway.http.openai.bodies import MaxPrice, Metadata

EventName = Literal["start", "output", "logs", "completed"]
Address = Annotated[str, Meta(min_length=1, max_length=2048)]

KINDS: dict[EventName, WebhookKind] = {
    "start": "started",
    "output": "progress",
    "logs": "progress",
    "completed": "completed",
}
LEAST_CANCEL_S = 5
MOST_CANCEL_S = 7 * 86_400

_LENGTH = re.compile(r"(?:([0-9]{1,2})d)?(?:([0-9]{1,3})h)?(?:([0-9]{1,5})m)?(?:([0-9]{1,6})s?)?")


class ModelPredictionBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST .../models/{owner}/{name}/predictions`, and those of deployments."""

    input: dict[str, Any]
    webhook: Address | None = None
    webhook_completed: Address | None = None
    """An older way to ask for the last event alone."""
    webhook_events_filter: Annotated[tuple[EventName, ...], Meta(min_length=1, max_length=8)] | None = None
    stream: bool | None = None
    """Whether it will be read as it comes: it always can be."""
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    metadata: Metadata | None = None


class PredictionBody(ModelPredictionBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST .../predictions`: a version by its id, as `owner/name:id`, or a model as `owner/name` or by our name."""

    version: Annotated[str, Meta(min_length=1, max_length=600)] | None = None
    model: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


def kinds_of(names: tuple[EventName, ...] | None) -> tuple[WebhookKind, ...]:
    """Give what a webhook is to tell; all, where the caller does not choose."""
    return tuple(dict.fromkeys(KINDS[name] for name in names or KINDS))


def cancel_after_s(text: str) -> int | None:
    """Read `Cancel-After`: seconds, or a length such as `1m30s`; None where it is left out. Raises InvalidRequest."""
    if not text:
        return None
    found = _LENGTH.fullmatch(text.strip().lower())
    parts = [int(part or 0) for part in found.groups()] if found else [0]
    seconds = sum(part * unit for part, unit in zip(parts, (86_400, 3600, 60, 1), strict=False)) if found else 0
    if not LEAST_CANCEL_S <= seconds <= MOST_CANCEL_S:
        raise InvalidRequest("Give a length of 5 s to 7 days, such as 90s or 1h30m.", param="Cancel-After")
    return seconds
