"""What the dialects of other clouds share: their names for models, their inputs, and calls that may be waited for."""

import asyncio
import re
from typing import Any

import msgspec
from litestar import Request
from litestar.datastructures import State

from gateway.catalog.model import Model
from gateway.contract.inputs import INPUT_TYPES, MEDIA_FIELDS
from gateway.db.webhooks import WebhookKind
from gateway.errors import FaregateError, InvalidRequest
from gateway.flow.authenticate import identify
from gateway.flow.call import FAMILY_NOTE, Call, Priority
from gateway.flow.view import View
from gateway.http.asked import MOST_TEXT_CHARS, noted
from gateway.http.endpoint import Desk
from gateway.http.model_names import Names
from gateway.http.raw import body_hash, read_body, read_head
from gateway.http.vendor_input import native_input, raw_of
from gateway.http.wishes import max_price_nanos
from gateway.ledger.admission import Replay
from gateway.ledger.keyring import Caller
from gateway.media.files import FILE_PREFIX
from gateway.net.addresses import UrlNotAllowed
from gateway.net.client import check_url

Asking = Request[Any, Any, State]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a dialect's body asks, before its names are read as ours."""

    model: str
    given: dict[str, Any]
    priority: Priority = "normal"
    max_price: str | float | None = None
    metadata: dict[str, str] | None = None
    deadline_s: int | None = None
    webhook: str = ""
    webhook_events: tuple[WebhookKind, ...] = ()
    notes: dict[str, str] = {}


class Dialect:
    """Takes the calls of one dialect through the way of a request, and shows them."""

    def __init__(self, family: str, names: Names, desk: Desk) -> None:
        self.family = family
        self.names = names
        self.way = desk.way
        self.watch = desk.watch
        self.addresses = desk.addresses
        self.inlet = desk.inlet
        self.blobs = desk.blobs
        self.base = desk.addresses.base
        self._metrics = desk.metrics
        self._most_bytes = desk.most_bytes
        self._own_file = re.compile(
            re.escape(self.base) + rf"/(?:[\w/-]*/)?files/({FILE_PREFIX}[0-9a-f]{{32}})(?:/content)?"
        )

    def model(self, name: str) -> Model | None:
        """Find a model by any of its names."""
        return self.names.find(self.way.snapshot(), name)

    async def caller(self, request: Asking) -> Caller:
        """Say who calls. Raises Unauthorized."""
        return await identify(self.way.keyring, read_head(request.scope).secret)

    async def body(self, request: Asking) -> bytes:
        """Read the body of a caller who is known. Raises Unauthorized before anything is read, TooLarge."""
        head = read_head(request.scope)
        await identify(self.way.keyring, head.secret)
        return await read_body(request.receive, head, self._most_bytes)

    def call(self, request: Asking, raw: bytes, asked: Asked) -> Call:
        """Make the call: a native one, whose input is in our names, with notes of how it was asked."""
        head = read_head(request.scope)
        model = self.model(asked.model)
        try:
            given = asked.given if model is None else self._native(model, asked.given)
            written, notes = raw_of(given), noted(asked.given, given)
        except RecursionError:
            raise InvalidRequest("The body is nested too deeply.", code="invalid_json") from None
        return Call(
            secret=head.secret,
            model=asked.model if model is None else model.name,
            task=None,
            input=written,
            mode="async",
            keep=True,
            idempotency_key=head.idempotency_key,
            body_hash=body_hash(head, request.scope, raw),
            max_price_nanos=max_price_nanos(asked.max_price),
            deadline_s=asked.deadline_s,
            priority=asked.priority,
            metadata=asked.metadata or {},
            webhook=asked.webhook,
            webhook_events=asked.webhook_events,
            notes={FAMILY_NOTE: self.family} | notes | asked.notes,
        )

    def _native(self, model: Model, given: dict[str, Any]) -> dict[str, Any]:
        """Give an input in our names, and uploaded files by their ids where they are given by their addresses here."""
        given = native_input(self.way.snapshot(), self.names.protocol, model, given)
        fields = {name for task in model.tasks for name in MEDIA_FIELDS[INPUT_TYPES[task]]}
        return {name: self._named(value) if name in fields else value for name, value in given.items()}

    def _named(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._named(each) for each in value]
        found = self._own_file.fullmatch(value) if isinstance(value, str) and len(value) < MOST_TEXT_CHARS else None
        return found[1] if found else value

    async def place(self, call: Call, patience_s: float) -> View:
        """Put a call on its way and show it: as it ended, where that was within the caller's patience.

        A repeat shows what it repeats. Raises the error of the step that refused the call.
        """
        if patience_s:
            call = msgspec.structs.replace(call, mode="wait")
        placed = await self.way.submit(call)
        if isinstance(placed, Replay):
            return await self.watch.view_for(call.secret, placed.request_id)
        if placed.box is None:
            view = await self.watch.accepted(placed)
            return msgspec.structs.replace(view, notes=call.notes, metadata=call.metadata or None)
        try:
            answer = await asyncio.wait_for(self.way.answer(placed), patience_s)
        except TimeoutError:
            pass  # it goes on, and is shown as it stands
        except FaregateError as error:
            self._metrics.refused(error.code)  # it has ended, and its view says how
        else:
            self._metrics.answered(answer.model, answer.total_us, answer.charge_nanos)
        return await self.watch.view_for(call.secret, placed.id)


def webhook_of(text: str) -> str:
    """Read the address of a webhook in its plain form; where it leads is looked at once the caller is known."""
    try:
        return str(check_url(text))
    except UrlNotAllowed:
        raise UrlNotAllowed("webhook") from None
