"""Tells accounts that a budget runs out: at 50, 80 and 100%, each once in its period, signed as their webhooks are.

That of a key in all, which has no period, is told as one of the period `total`, and again once it was raised.

An alert is written in the transaction that marks its threshold as told, so a killed settler loses none; it is told at
least once, always under the same id, and tried again for a day.
"""

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.limits import OWNER_KINDS
from gateway.errors import FaregateError, Unavailable
from gateway.ledger.transaction import statements
from gateway.money import usd_text
from gateway.webhooks.schedule import next_s
from gateway.webhooks.secrets import Secrets
from gateway.webhooks.signature import signed_headers

log = structlog.get_logger()

LOOK_S = 3.0
MOST_AT_ONCE = 16
LEASE_MARGIN_S = 5.0
EVENT = "budget.threshold"

_SQL = files("gateway.webhooks") / "sql"
_FIND, _FIND_KEY, _LEASE = (
    (_SQL / f"{name}.sql").read_text("utf-8") for name in ("budget_alert", "key_alert", "lease_alerts")
)
_NOTE = """
update limit_alert set delivered_at = case when $2::text = '' then coalesce(delivered_at, now()) end,
  due_at = now() + coalesce($3::float8, 0) * interval '1 second', given_up = $2::text <> '' and $3::float8 is null
where id = $1 and delivered_at is null and ($2::text = '' or tries = $4)
"""


class BudgetAlert(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold of a budget that was met, on lease for one try."""

    id: UUID
    at: datetime
    account_id: int
    account: str
    owner_kind: int
    owner_id: int
    key_name: str | None
    period: str
    since: datetime | None
    resets_at: datetime | None
    percent: int
    used_nanos: int
    limit_nanos: int
    url: str
    tries: int

    @property
    def event_id(self) -> str:
        """The id under which it is told, in every try."""
        return f"evt_{self.id.hex}-budget-{self.percent}"


class BudgetAlerts:
    """Finds budgets that run out, and tells their accounts. Give it a guarded client."""

    def __init__(self, engine: AsyncEngine, client: httpx.AsyncClient, secrets: Secrets, *, timeout_s: float) -> None:
        self._engine = engine
        self._client = client
        self._secrets = secrets
        self._timeout_s = timeout_s

    async def run(self, stopping: asyncio.Event) -> None:
        """Look and tell until told to stop."""
        while not stopping.is_set():
            try:
                await self.look()
                await self.round()
            except Unavailable as error:
                log.warning("budgets.retry", error=error.message)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), LOOK_S)

    async def look(self) -> int:
        """Write the alerts of all budgets that have met a threshold. Answers how many. Raises Unavailable."""
        alerts = 0
        for find in (_FIND, _FIND_KEY):
            while rows := await self._run(find):
                alerts += rows[0]["alerts"]
        return alerts

    async def round(self) -> int:
        """Tell what is due. Answers how many were tried. Raises Unavailable."""
        tried = 0
        while rows := await self._run(_LEASE, MOST_AT_ONCE, self._timeout_s + LEASE_MARGIN_S):
            await asyncio.gather(*(self._tell(BudgetAlert(**row)) for row in rows))
            tried += len(rows)
        return tried

    async def _tell(self, alert: BudgetAlert) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                problem = await self._send(alert)
        except TimeoutError:
            problem = "no answer in time"
        again_s = next_s(alert.tries) if problem else None
        await self._run(_NOTE, alert.id, problem, again_s, alert.tries)
        log.info("budgets.alert", alert=alert.event_id, error=problem, tries=alert.tries)

    async def _send(self, alert: BudgetAlert) -> str:
        """Make one try; answers what went wrong, '' where nothing did."""
        body = msgspec.json.encode(alert_body(alert))
        try:
            secrets = await self._secrets.valid(alert.account_id)
            headers = signed_headers(secrets, alert.event_id, int(time.time()), body)
            headers |= {"content-type": "application/json", "user-agent": "faregate-webhooks"}
            async with self._client.stream("POST", alert.url, content=body, headers=headers) as answer:
                return "" if 200 <= answer.status_code < 300 else f"answered {answer.status_code}"
        except FaregateError as error:
            return error.code
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return type(error).__name__  # its words may hold an address that was resolved

    async def _run(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        async with statements(self._engine) as driver:
            rows: list[asyncpg.Record] = await driver.fetch(statement, *arguments)
            return rows


def alert_body(alert: BudgetAlert) -> dict[str, Any]:
    """Write what is told."""
    owner = OWNER_KINDS[alert.owner_kind]
    data = {
        "owner": owner,
        "account_id": alert.account_id,
        "account": alert.account,
        "period": alert.period,
        "percent": alert.percent,
        "limit_nanos": alert.limit_nanos,
        "used_nanos": alert.used_nanos,
        "limit_usd": usd_text(alert.limit_nanos),
        "used_usd": usd_text(alert.used_nanos),
        "since": _text(alert.since),
        "resets_at": _text(alert.resets_at),
    }
    if owner == "key":
        data |= {"key_id": alert.owner_id, "key": alert.key_name}
    return {"id": alert.event_id, "type": EVENT, "created_at": _text(alert.at), "data": data}


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
