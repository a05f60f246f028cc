"""Backtests as they lie in Postgres: begun by a gateway, worked off by a settler, followed and cancelled by anyone."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import ColumnElement, Row, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.sql.dml import ReturningUpdate

from gateway.db.catalog import backtest
from gateway.errors import InvalidRequest, NotFound
from gateway.ledger.transaction import transaction
from gateway.pricing.backtest import DAYS, Backtest, BacktestResult, Draft, digest_of

PREFIX = "bt_"
KEPT_DAYS = 90
SILENT_S = 20
"""A running one of which nothing was heard for so long was left behind, and is begun again."""
MOST_LISTED = 50


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in `backtest.draft`."""

    draft: Draft
    days: int


class Found(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What lies in `backtest.result`."""

    result: BacktestResult | None = None
    failure: str = ""


def _claim() -> ReturningUpdate[Any]:
    """Write the statement that takes the next one up; it is asked every second, so it is written once."""
    left = backtest.c.updated_at < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, bindparam("silent_s"))
    waiting = or_(backtest.c.state == "waiting", (backtest.c.state == "running") & left)
    first = select(backtest.c.id).where(waiting).order_by(backtest.c.created_at).limit(1)
    taken = update(backtest).where(backtest.c.id == first.with_for_update(skip_locked=True).scalar_subquery())
    return taken.values(state="running", updated_at=func.now(), rows_done=0).returning(backtest)


_CLAIM = _claim()


class Backtests:
    """Begins, follows and cancels backtests."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine

    async def begin(self, draft: Draft, days: int, author: str) -> Backtest:
        """Ask for one; a settler takes it up within a second. Raises InvalidRequest."""
        if days not in DAYS:
            raise InvalidRequest(f"A backtest looks back {', '.join(map(str, DAYS))} days.", param="days")
        row = {
            "id": uuid4(),
            "draft": msgspec.to_builtins(Asked(draft=draft, days=days), str_keys=True),
            "digest": digest_of(draft),
            "author": author,
        }
        old = func.now() - func.make_interval(0, 0, 0, KEPT_DAYS)
        async with transaction(self.engine) as connection:
            await connection.execute(delete(backtest).where(backtest.c.created_at < old))
            return _read((await connection.execute(insert(backtest).values(row).returning(backtest))).one())

    async def read(self, backtest_id: str) -> Backtest:
        """Give one as it stands. Raises NotFound."""
        async with transaction(self.engine) as connection:
            row = (await connection.execute(select(backtest).where(backtest.c.id == _uuid(backtest_id)))).one_or_none()
        if row is None:
            raise _unknown(backtest_id)
        return _read(row)

    async def list(self, *, model_id: int | None = None, limit: int = MOST_LISTED) -> Sequence[Backtest]:
        """Give the latest, of one model or of all drafts."""
        wanted = select(backtest).order_by(backtest.c.created_at.desc()).limit(limit)
        if model_id is not None:
            wanted = wanted.where(backtest.c.draft["draft"]["model_id"].as_integer() == model_id)
        async with transaction(self.engine) as connection:
            return [_read(row) for row in await connection.execute(wanted)]

    async def cancel(self, backtest_id: str) -> Backtest:
        """Call one off; one that is over stays as it is. Raises NotFound."""
        await self._change(_uuid(backtest_id), {"state": "cancelled", "finished_at": func.now()})
        return await self.read(backtest_id)

    async def claim(self) -> Backtest | None:
        """Take up the next that waits, or that whoever ran it has left behind; None where there is none."""
        async with transaction(self.engine) as connection:
            row = (await connection.execute(_CLAIM, {"silent_s": SILENT_S})).one_or_none()
        return None if row is None else _read(row)

    async def advance(self, backtest_id: str, rows_done: int, rows_in_all: int) -> bool:
        """Note how far it is; answers whether it is still wanted."""
        return await self._change(_uuid(backtest_id), {"rows_done": rows_done, "rows_in_all": rows_in_all})

    async def finish(self, backtest_id: str, found: Found) -> bool:
        """Write down what was found, or why nothing was; answers whether it was still wanted."""
        values = {
            "state": "done" if found.result else "failed",
            "finished_at": func.now(),
            "result": msgspec.to_builtins(found),
        }
        return await self._change(_uuid(backtest_id), values)

    async def _change(self, number: UUID, values: dict[str, Any]) -> bool:
        is_open: ColumnElement[bool] = backtest.c.state.in_(("waiting", "running"))
        changed = update(backtest).where(backtest.c.id == number, is_open).values(updated_at=func.now(), **values)
        async with transaction(self.engine) as connection:
            return (await connection.execute(changed)).rowcount > 0


def _uuid(backtest_id: str) -> UUID:
    try:
        if not backtest_id.startswith(PREFIX):
            raise ValueError
        return UUID(hex=backtest_id.removeprefix(PREFIX))
    except ValueError:
        raise _unknown(backtest_id) from None


def _unknown(backtest_id: str) -> NotFound:
    return NotFound(f"There is no backtest {backtest_id[:60]!r}; they are kept {KEPT_DAYS} days.")


def _read(row: Row[Any]) -> Backtest:
    asked = msgspec.convert(row.draft, Asked)
    found = msgspec.convert(row.result, Found) if row.result is not None else Found()
    return Backtest(
        id=f"{PREFIX}{row.id.hex}",
        state=row.state,
        draft=asked.draft,
        digest=row.digest,
        days=asked.days,
        author=row.author,
        created_at=_utc(row.created_at),
        finished_at=_utc(row.finished_at),
        rows_done=row.rows_done,
        rows_in_all=row.rows_in_all,
        result=found.result,
        failure=found.failure,
    )


def _utc(at: Any) -> datetime | Any:
    return at.astimezone(UTC) if at is not None else None
