"""Accounts, keys and requests for tests of admission and settlement, written straight into the tables."""

import hashlib
from typing import Any

import asyncpg

from gateway.contract.ids import new_request_id
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.ledger.admission import Admission, Opening, Replay
from gateway.ledger.endings import Ending
from gateway.ledger.settlement import Settlement

HOLD = 1_000


class Till:
    """One admission, one settlement, and a connection of the test's own to look at what they did."""

    db: Any
    admission: Admission
    settlement: Settlement

    def __init__(self, database_url: str, *, empty: bool = False) -> None:
        self.database_url = database_url
        self._empty = empty
        self._keys = 0

    async def __aenter__(self) -> "Till":
        self.db = await asyncpg.connect(self.database_url)
        if self._empty:  # a hundred times faster than a database of each test's own
            await self.db.execute(_EMPTY)
        self.admission = Admission(self.database_url)
        self.settlement = Settlement(self.database_url)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.admission.close()
        await self.settlement.close()
        await self.db.close()

    async def account(self, balance: int = 0, *, limit: int = 0, **fields: Any) -> int:
        """Make an account with a balance; a limit makes it a postpaid one."""
        number: int = await self.db.fetchval(
            "insert into account (name, kind, credit_limit_nanos, topped_up_nanos, available_nanos)"
            " values (gen_random_uuid()::text, $1, $2, $3, $3) returning id",
            "postpaid" if limit else "prepaid",
            limit,
            balance,
        )
        await self._set("account", number, fields)
        return number

    async def key(self, account_id: int, *, budget: int | None = None, **fields: Any) -> int:
        """Make an API key of an account."""
        self._keys += 1
        digest = hashlib.sha256(f"{account_id}-{self._keys}-{new_request_id()}".encode()).digest()
        number: int = await self.db.fetchval(
            "insert into api_key (account_id, hash, prefix, budget_nanos) values ($1, $2, 'fg_', $3) returning id",
            account_id,
            digest,
            budget,
        )
        await self._set("api_key", number, fields)
        return number

    async def payer(self, balance: int = 0, *, limit: int = 0, budget: int | None = None) -> tuple[int, int]:
        """Make an account with a key; answers the ids of both."""
        account_id = await self.account(balance, limit=limit)
        return account_id, await self.key(account_id, budget=budget)

    async def _set(self, table: str, number: int, fields: dict[str, Any]) -> None:
        for name, expression in fields.items():
            await self.db.execute(f"update {table} set {name} = {expression} where id = $1", number)

    async def admit(self, payer: tuple[int, int], hold: int = HOLD, **fields: Any) -> str | Replay:
        """Admit a request; answers its id, or the Replay."""
        opening = opened(payer, hold, **fields)
        answer = await self.admission.admit(opening)
        return answer if isinstance(answer, Replay) else opening.id

    async def money(self, account_id: int) -> tuple[int, int, int]:
        """Answer what is available, held and spent."""
        query = "select available_nanos, held_nanos, spent_nanos from account where id = $1"
        row = await self.db.fetchrow(query, account_id)
        return tuple(row)

    async def used(self, key_id: int) -> int:
        """Answer what a key has used of its budget."""
        number: int = await self.db.fetchval("select used_nanos from api_key where id = $1", key_id)
        return number

    async def count(self, table: str) -> int:
        """Count the rows of a table."""
        number: int = await self.db.fetchval(f"select count(*) from {table}")
        return number

    async def broken_books(self) -> list[str]:
        """Name the statements about money that do not hold: I2 to I6, I13, and what counts against budgets."""
        return [name for name, query in _BOOKS.items() if await self.db.fetch(query)]


def opened(payer: tuple[int, int], hold: int = HOLD, **fields: Any) -> Opening:
    """Make an opening."""
    settings: dict[str, Any] = {
        "id": new_request_id(),
        "account_id": payer[0],
        "api_key_id": payer[1],
        "model_id": 1,
        "price_version_id": 1,
        "pool": "fake",
        "task": "chat",
        "hold_nanos": hold,
        "deadline_s": 60,
        "gateway": "test",
    }
    return Opening(**(settings | fields))


def ended(request_id: str, charge: int = HOLD, **fields: Any) -> Ending:
    """Make an ending."""
    settings: dict[str, Any] = {
        "id": request_id,
        "charge_nanos": charge,
        "price_version_id": 1,
        "outcome": "succeeded",
        "reason": "done",
        "attempt": 1,
        "worker": "w1",
        "units": Units(input_tokens=10, output_tokens=7, pixels=3),
        "phases": Phases(queue_us=100, forward_us=2_000),
    }
    return Ending(**(settings | fields))


_EMPTY = """
set session_replication_role = replica;
truncate account, api_key, open_request, request_payload, request_output, idempotency, usage, usage_rollup,
  ledger_entry, attempt, request_way;
set session_replication_role = origin;
"""

# Queries that find what contradicts an invariant.
_BOOKS = {
    "I2 per account": """
        select from account where topped_up_nanos <> available_nanos + held_nanos + spent_nanos""",
    "I2 per transaction": """
        select from ledger_entry group by transaction_id having sum(amount_nanos) <> 0""",
    "I3": """
        select from account a where spent_nanos is distinct from
          (select coalesce(-sum(amount_nanos), 0) from ledger_entry l where l.account_id = a.id and kind = 0)""",
    "I4": """
        select from usage u full join
          (select transaction_id as id, count(*) as n from ledger_entry where kind = 0 group by 1) l on l.id = u.id
        where l.n is distinct from 2 or u.id is null""",
    "I5": """
        select from usage where charge_nanos not between 0 and hold_nanos""",
    "I6": """
        select from account where available_nanos < -credit_limit_nanos""",
    "I8": """
        select from account a where held_nanos is distinct from
          (select coalesce(sum(hold_nanos), 0) from open_request o where o.account_id = a.id)""",
    "I13": """
        with u as (select api_key_id, count(*) as n, sum(charge_nanos) as charge, sum(input_tokens) as tokens
          from usage group by 1),
        r as (select api_key_id, sum(requests) as n, sum(charge_nanos) as charge, sum(input_tokens) as tokens
          from usage_rollup group by 1)
        select from u full join r using (api_key_id)
        where (u.n, u.charge, u.tokens) is distinct from (r.n, r.charge, r.tokens)""",
    "budgets": """
        select from api_key k where used_nanos is distinct from
          (select coalesce(sum(hold_nanos), 0) from open_request o where o.api_key_id = k.id)
          + (select coalesce(sum(charge_nanos), 0) from usage u where u.api_key_id = k.id)""",
}
