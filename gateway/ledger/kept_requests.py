"""The requests of an account that are kept, by task: a page of them, and forgetting one."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Select, bindparam, delete, exists, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.events import Output, decode_output
from gateway.contract.ids import uuid_of
from gateway.contract.tasks import TASKS, Task
from gateway.db.requests import open_request, request_output, request_payload
from gateway.db.usage import usage
from gateway.ledger.open_requests import Record, finished_record, open_record
from gateway.ledger.outputs import KeptOutput
from gateway.ledger.transaction import transaction


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests to list: of these tasks, after this one, so many, the newest or the oldest first."""

    tasks: Sequence[Task]
    after: str = ""
    limit: int = 20
    newest_first: bool = True
    model_id: int | None = None
    """Only of this model."""


MOST_COUNTED = 10_000


class KeptRequests:
    """Lists and forgets. Every method raises Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def page(self, account_id: int, page: Page) -> tuple[list[Record], bool]:
        """List requests of this account, open ones and finished ones whose output is kept; say whether more follow."""
        async with transaction(self._engine) as connection:
            # Open first: what is settled between the two looks is then found by the second.
            waiting = (await connection.execute(_open_page(account_id, page))).all()
            ended = (await connection.execute(finished_page(account_id, page))).all()
        found = {row.id: open_record(row) for row in waiting}
        found |= {row.id: finished_record(row, _kept(row)) for row in ended}
        ids = sorted(found, reverse=page.newest_first)
        return [found[id_] for id_ in ids[: page.limit]], len(ids) > page.limit

    async def count(self, account_id: int, page: Page) -> int:
        """Count the requests of this account that pages would list from the first to the last, up to MOST_COUNTED."""
        every = msgspec.structs.replace(page, after="", limit=MOST_COUNTED - 1)
        waiting = _open_page(account_id, every).with_only_columns(open_request.c.id).subquery()
        ended = finished_page(account_id, every).with_only_columns(usage.c.id).subquery()
        both = select(waiting.c.id).union(select(ended.c.id)).limit(MOST_COUNTED).subquery()
        async with transaction(self._engine) as connection:
            counted: int = (await connection.execute(select(func.count()).select_from(both))).scalar_one()
            return counted

    async def forget(self, account_id: int, request_id: str) -> Output | None:
        """Forget what is kept of a finished request of this account, and answer its output; None where none was."""
        id_ = uuid_of(request_id)
        mine = exists().where(usage.c.id == id_, usage.c.account_id == account_id)
        gone = delete(request_output).where(request_output.c.id == id_, mine).returning(request_output.c.output)
        async with transaction(self._engine) as connection:
            row = (await connection.execute(gone)).one_or_none()
        return None if row is None or row.output is None else decode_output(row.output)


def _open_page(account_id: int, page: Page) -> Select[Any]:
    query = (
        select(open_request, request_payload.c.metadata)
        .join_from(open_request, request_payload, request_payload.c.id == open_request.c.id)
        .where(open_request.c.account_id == account_id, _is_one_of(open_request.c.task, page))
    )
    if page.model_id is not None:
        query = query.where(open_request.c.model_id == page.model_id)
    return _in_order(query, open_request.c.id, page)


def finished_page(account_id: int, page: Page) -> Select[Any]:
    """Ask for the finished ones; an index serves the tasks of videos, another all whose output is media."""
    kept = request_output.c
    query = (
        select(usage, kept.output, kept.detail, kept.metadata, kept.expires_at)
        .join_from(usage, request_output, kept.id == usage.c.id)
        .where(usage.c.account_id == account_id, _is_one_of(usage.c.task, page), kept.expires_at > func.now())
    )
    if page.model_id is not None:
        query = query.where(usage.c.model_id == page.model_id)
    return _in_order(query, usage.c.id, page)


def _in_order(query: Select[Any], id_: Any, page: Page) -> Select[Any]:
    if page.after:
        after: UUID = uuid_of(page.after)
        query = query.where(id_ < after if page.newest_first else id_ > after)
    return query.order_by(id_.desc() if page.newest_first else id_).limit(page.limit + 1)


def _is_one_of(column: Any, page: Page) -> Any:
    """Say which tasks, in the statement's own text: Postgres sees then that the index of these tasks will do."""
    numbers = [TASKS.index(task) for task in page.tasks]
    return column.in_(bindparam(None, numbers, expanding=True, literal_execute=True))


def _kept(row: Any) -> KeptOutput:
    return KeptOutput(
        output=None if row.output is None else decode_output(row.output),
        detail=row.detail,
        metadata=row.metadata,
        expires_at=row.expires_at,
    )
