"""Makes the calls of a form: one for the model that is tried, one for the model beside it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.playground.elsewhere import Elsewhere
from gateway.admin.playground.fields import Field, fields_of, tasks_of
from gateway.admin.playground.filled import Uploads, filled, raw
from gateway.admin.playground.runs import Runs
from gateway.admin.playground.snippets import snippets
from gateway.catalog.model import Model, Snapshot
from gateway.contract.tasks import Task
from gateway.db.reading import reading
from gateway.errors import FaregateError, InvalidRequest, NotFound
from gateway.flow.call import Call
from gateway.flow.quote import Quoted
from gateway.flow.way import Way
from gateway.flow.wish import Wish

MOST_KEYS = 200
STREAMED: frozenset[Task] = frozenset({"chat", "completion"})

_KEYS = text(
    """
    select k.id, coalesce(nullif(k.name, ''), k.prefix) as name, a.name as account from api_key k
    join account a on a.id = k.account_id
    where k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) and a.suspended_at is null
    order by k.id = :chosen desc, k.last_used_at desc nulls last, k.id desc limit :most
    """
)


class PayingKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key whose account pays for runs."""

    id: int
    name: str
    account: str


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What the form is about."""

    model: Model
    task: Task
    fields: Sequence[Field]
    beside: Model | None
    """The model that is compared."""
    key_id: int


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a form, quoted, or why it cannot be made."""

    model: str
    call: Call | None = None
    quoted: Quoted | None = None
    failure: FaregateError | None = None
    shown: Mapping[str, Any] = {}
    """The input, as it is written out."""
    snippets: Mapping[str, str] = {}


class PlayDesk:
    """What the playground works with."""

    def __init__(self, engine: AsyncEngine, way: Way, base_url: str) -> None:
        self._engine = engine
        self._way = way
        self._base_url = base_url
        self.runs = Runs(way, Elsewhere(engine, way), partial(snippets, base_url))

    @property
    def catalog(self) -> Snapshot:
        """The models as they are now."""
        return self._way.snapshot()

    async def keys(self, chosen: int) -> list[PayingKey]:
        """List keys that may pay, the chosen one first, then by their last use. Raises Unavailable."""
        async with reading(self._engine) as connection:
            rows = await connection.execute(_KEYS, {"chosen": chosen, "most": MOST_KEYS})
            return [PayingKey(**row._mapping) for row in rows]

    def chosen(self, given: Mapping[str, str]) -> Chosen:
        """Read which models, task and key a form is about. Raises NotFound, and InvalidRequest."""
        models = self.catalog.models
        name = given.get("model", "")
        if name and name not in models:
            raise NotFound("There is no such model.", param="model")
        model = models[name] if name else self._first()
        task = tasks_of(model, given.get("task", ""))
        beside = models.get(given.get("beside", ""))
        key = given.get("key", "")
        if key and not (key.isascii() and key.isdigit() and len(key) <= 18):
            raise InvalidRequest("'key' is the id of a key.", param="key")
        fields = fields_of(model, task)
        same = beside if beside is not None and task in beside.tasks and beside.name != model.name else None
        return Chosen(model=model, task=task, fields=fields, beside=same, key_id=int(key or 0))

    async def trials(self, chosen: Chosen, form: Mapping[str, str], uploads: Uploads) -> list[Trial]:
        """Make the calls of a form, and quote each. What cannot be made says why."""
        made = [await self._trial(chosen, chosen.model, chosen.fields, form, uploads)]
        if chosen.beside is not None:
            known = {field.name for field in fields_of(chosen.beside, chosen.task)}
            fields = [field for field in chosen.fields if field.name in known]
            made.append(await self._trial(chosen, chosen.beside, fields, form, uploads))
        return made

    async def _trial(
        self, chosen: Chosen, model: Model, fields: Sequence[Field], form: Mapping[str, str], uploads: Uploads
    ) -> Trial:
        try:
            told = await filled(fields, chosen.task, form, uploads)
            call = Call(
                secret="",
                key_id=chosen.key_id,
                model=model.name,
                task=None,
                input=raw(told.input),
                mode="stream" if chosen.task in STREAMED else "wait",
                keep=True,
                wish=Wish(task=chosen.task) if len(model.tasks) > 1 else None,
                metadata={"from": "playground"},
            )
            quoted, _, _ = await self._way.quote(call)
        except FaregateError as failure:
            return Trial(model=model.name, failure=failure)
        written = snippets(self._base_url, model.name, chosen.task, told.shown)
        return Trial(model=model.name, call=call, quoted=quoted, shown=told.shown, snippets=written)

    def _first(self) -> Model:
        """Give a model to begin with: one that is for sale and chats, where there is one."""
        models = self.catalog.models.values()
        if not models:
            raise NotFound("The catalog has no models yet.")
        return max(models, key=lambda model: (model.price is not None, "chat" in model.tasks))
