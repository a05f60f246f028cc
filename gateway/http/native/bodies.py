"""What `POST /v1/requests` takes."""

from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.contract.tasks import Task
from gateway.db.webhooks import WebhookKind
from gateway.flow.call import Priority
from gateway.flow.wish import Sort
from gateway.http.openai.bodies import MaxPrice, Metadata, ModelName
from gateway.http.wishes import Fallbacks, Names, Provider

DeadlineS = Annotated[int, Meta(ge=1, le=7 * 86400)]


class SubmitBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of any task; `input` holds what the task's OpenAI call holds beside the model."""

    model: ModelName
    input: msgspec.Raw
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    quote: Annotated[str, Meta(min_length=1, max_length=256)] = ""
    deadline_s: DeadlineS | None = None
    task: Task | None = None
    """What is to be done; needed where the model is `auto`."""
    models: Fallbacks | None = None
    provider: Provider | None = None
    only: Names | None = None
    ignore: Names | None = None
    sort: Sort | None = None
    metadata: Metadata | None = None
    webhook: Annotated[str, Meta(min_length=1, max_length=2048)] | None = None
    webhook_events: Annotated[tuple[WebhookKind, ...], Meta(min_length=1, max_length=3)] = ("completed",)
