"""All that is known of one request: where its time and its money went."""

from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.catalog.codec import read_components, read_outcome
from gateway.contract.ids import request_id_of, uuid_of
from gateway.contract.phases import Phases
from gateway.contract.states import OUTCOMES, REASONS, Outcome, Reason
from gateway.contract.tasks import TASKS, Task
from gateway.contract.units import UNIT_NAMES, Units
from gateway.db.reading import reading
from gateway.db.usage import PHASE_COLUMNS
from gateway.errors import NotFound
from gateway.ledger.outputs import KeptOutput, kept_output
from gateway.ledger.steps import RatedStep, steps_of
from gateway.pricing.price import PriceVersion
from gateway.pricing.terms import NO_TERMS, Terms, read_terms

_NAMES = """a.name as account, k.name as key_name, k.prefix as key_prefix, m.name as model,
  p.components, p.valid_from, p.outcome as policy, p.minimum_nanos, p.door, p.author, p.reason as price_reason"""
_JOINS = """left join account a on a.id = u.account_id left join api_key k on k.id = u.api_key_id
  left join model m on m.id = u.model_id left join price_version p on p.id = u.price_version_id"""


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How a finished request ended, as its usage row says."""

    finished_at: datetime
    outcome: Outcome
    reason: Reason
    charge_nanos: int
    cost_nanos: int | None
    gpu_us: int
    units: Units
    phases: Phases
    attempt: int
    forward_began: bool
    pool: str
    worker: str
    route: str


class LedgerLine(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the ledger."""

    at: datetime
    transaction_id: UUID
    account_id: int
    amount_nanos: int
    kind: int
    reason: str


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A request, open or finished."""

    id: str
    account_id: int
    account: str
    key_id: int
    key: str
    key_prefix: str
    model: str
    task: Task
    created_at: datetime
    deadline_at: datetime | None
    """Known while it is open."""
    hold_nanos: int
    price: PriceVersion
    price_door: str
    price_author: str
    terms: Terms
    pool: str
    gateway: str = ""
    read_at: datetime
    """When this was read, by the clock of Postgres."""
    end: End | None = None
    """None while it is open."""
    steps: tuple[RatedStep, ...] = ()
    kept: KeptOutput = msgspec.field(default_factory=KeptOutput)
    entries: tuple[LedgerLine, ...] = ()
    refunded_nanos: int = 0

    @property
    def total_us(self) -> int:
        """How long it took from its admission, up to now where it is open."""
        until = self.end.finished_at if self.end else self.read_at
        return max(round((until - self.created_at).total_seconds() * 1_000_000), 0)

    @property
    def charge_nanos(self) -> int:
        """What it was charged; zero while it is open."""
        return self.end.charge_nanos if self.end else 0

    @property
    def margin_nanos(self) -> int | None:
        """What is left of the charge after the cost; None where nobody knows the cost."""
        if self.end is None or self.end.cost_nanos is None:
            return None
        return self.end.charge_nanos - self.end.cost_nanos


_OWN = "and ($2::bigint is null or u.api_key_id = $2)"


async def read_story(engine: AsyncEngine, request_id: str, *, key_id: int | None = None) -> Story:
    """Read all of one request; with `key_id` only where it is that key's. Raises NotFound."""
    try:
        number = uuid_of(request_id)
    except ValueError:
        raise _missing() from None
    async with reading(engine) as connection:
        session: Any = (await connection.get_raw_connection()).driver_connection
        found = await session.fetchrow(
            f"select u.*, now() as read_at, {_NAMES} from usage u {_JOINS} where u.id = $1 {_OWN}", number, key_id
        )
        if found is not None:
            return await _finished(connection, session, found)
        found = await session.fetchrow(
            f"select u.*, now() as read_at, {_NAMES} from open_request u {_JOINS} where u.id = $1 {_OWN}",
            number,
            key_id,
        )
    if found is None:
        raise _missing()
    return Story(**_shared(found), deadline_at=found["deadline_at"], gateway=found["gateway"])


def _missing() -> NotFound:
    return NotFound("There is no such request.", code="request_not_found")


def _shared(row: asyncpg.Record) -> dict[str, Any]:
    terms = row["terms"]
    return {
        "id": request_id_of(row["id"]),
        "account_id": row["account_id"],
        "account": row["account"] or "",
        "key_id": row["api_key_id"],
        "key": row["key_name"] or row["key_prefix"] or "",
        "key_prefix": row["key_prefix"] or "",
        "model": row["model"] or "",
        "task": TASKS[row["task"]],
        "created_at": row["created_at"],
        "hold_nanos": row["hold_nanos"],
        "price": PriceVersion(
            row["price_version_id"],
            row["model_id"],
            read_components(_plain(row["components"]) or []),
            row["valid_from"] or row["created_at"],
            read_outcome(_plain(row["policy"])),
            minimum_nanos=row["minimum_nanos"] or 0,
        ),
        "price_door": row["door"] or "",
        "price_author": row["author"] or "",
        "terms": read_terms(terms if isinstance(terms, str) else None) if terms else NO_TERMS,
        "pool": row["pool"],
        "read_at": row["read_at"],
    }


def _plain(value: Any) -> Any:
    """Give JSON as asyncpg has it: text, where no codec was set."""
    return msgspec.json.decode(value) if isinstance(value, str) else value


async def _finished(connection: AsyncConnection, session: Any, row: asyncpg.Record) -> Story:
    number = row["id"]
    refunds = await session.fetch("select id, at, amount_nanos from refund where request_id = $1", number)
    entries = await session.fetch(
        "select at, transaction_id, account_id, amount_nanos, kind, reason from ledger_entry "
        "where at = any($1::timestamptz[]) and transaction_id = any($2::uuid[]) "
        "order by at, transaction_id, amount_nanos",
        [row["finished_at"], *(one["at"] for one in refunds)],
        [number, *(one["id"] for one in refunds)],
    )
    return Story(
        **_shared(row),
        deadline_at=None,
        end=End(
            finished_at=row["finished_at"],
            outcome=OUTCOMES[row["outcome"]],
            reason=REASONS[row["reason"]],
            charge_nanos=row["charge_nanos"],
            cost_nanos=row["cost_nanos"],
            gpu_us=row["gpu_us"],
            units=Units(*(row[name] for name in UNIT_NAMES)),
            phases=Phases(*(row[name] for name in PHASE_COLUMNS)),
            attempt=row["attempt"],
            forward_began=row["forward_began"],
            pool=row["pool"],
            worker=row["worker"],
            route=row["route"],
        ),
        steps=await steps_of(connection, number),
        kept=await kept_output(connection, number),
        entries=tuple(LedgerLine(**{**dict(one), "reason": one["reason"] or ""}) for one in entries),
        refunded_nanos=sum(one["amount_nanos"] for one in refunds),
    )
