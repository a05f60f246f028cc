"""What `POST /v1/requests` takes."""

from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.flow.call import Priority
from gateway.http.openai.bodies import MaxPrice, Metadata, ModelName

DeadlineS = Annotated[int, Meta(ge=1, le=7 * 86400)]


class SubmitBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of any task; `input` holds what the task's OpenAI call holds beside the model."""

    model: ModelName
    input: msgspec.Raw
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    deadline_s: DeadlineS | None = None
    metadata: Metadata | None = None
