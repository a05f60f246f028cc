"""What is told of a request, and by which id: the same in every try, so that a receiver can drop what it has had."""

import re
from datetime import datetime
from uuid import UUID

import msgspec

from gateway.contract.ids import PREFIX, request_id_of
from gateway.db.webhooks import WEBHOOK_KINDS, WebhookKind
from gateway.errors import NotFound

_ID = re.compile(r"evt_([0-9a-f]{32})-(started|completed|progress-([0-9]{1,2}|100))")


class EventKey(msgspec.Struct, frozen=True):
    """Which event: of which request, and what it tells; `number` is the per cent of a progress, else 0."""

    request: UUID
    kind: WebhookKind
    number: int = 0

    @property
    def id(self) -> str:
        """The event's id: `evt_` and the request's digits, then what it tells."""
        told = f"{self.kind}-{self.number}" if self.kind == "progress" else self.kind
        return f"evt_{self.request.hex}-{told}"

    @property
    def request_id(self) -> str:
        """The id of the request that is told of."""
        return request_id_of(self.request)

    @property
    def type(self) -> str:
        """The event's type: `request.completed`, for example."""
        return f"request.{self.kind}"

    @property
    def columns(self) -> tuple[UUID, int, int]:
        """What identifies it in Postgres."""
        return self.request, WEBHOOK_KINDS.index(self.kind), self.number


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """An event on lease: the `tries`-th try to tell it, the `round`-th of its schedule."""

    key: EventKey
    account_id: int
    url: str
    host: str
    created_at: datetime
    tries: int
    round: int


def key_of(request: UUID, kind: int, number: int) -> EventKey:
    """Read what identifies an event in Postgres."""
    return EventKey(request, WEBHOOK_KINDS[kind], number)


def parse_event_id(text: str) -> EventKey:
    """Read an event's id. Raises NotFound: what is no id names no event."""
    found = _ID.fullmatch(text)
    if found is None:
        raise NotFound("There is no such webhook event.")
    digits, told, percent = found.groups()
    kind: WebhookKind = "started" if told == "started" else "completed" if told == "completed" else "progress"
    return EventKey(UUID(hex=digits), kind, int(percent or 0))


def parse_request_id(text: str) -> UUID:
    """Read the id of a request. Raises NotFound."""
    if re.fullmatch(PREFIX + "[0-9a-f]{32}", text) is None:
        raise NotFound("There is no such request.", param="request")
    return UUID(hex=text.removeprefix(PREFIX))
