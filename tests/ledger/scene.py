"""A small business for the tests of the books: an account, a key, two models, and calls that really were charged."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.ids import new_request_id
from gateway.contract.phases import Phases
from gateway.contract.states import Outcome, Reason
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.db.session import slow_engine
from gateway.ledger.accounts import Accounts, NewAccount
from gateway.ledger.admission import Admission, Opening
from gateway.ledger.books.verify import Books
from gateway.ledger.endings import Ending
from gateway.ledger.keys import Keys, NewKey
from gateway.ledger.records import Account, Issued
from gateway.ledger.settlement import Settlement
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent, PriceVersion
from gateway.pricing.rate import charge_nanos

USD = 10**9
TOKENS = (PriceComponent("input_token", 150_000), PriceComponent("output_token", 600_000))
REQUEST = (PriceComponent("request", 1_000_000_000),)
OUTCOME_REASONS: dict[Outcome, Reason] = {
    "succeeded": "done",
    "failed": "engine_error",
    "cancelled": "client_gone",
    "expired": "deadline",
}


class Scene:
    """Everything a test of the books needs. Make it with `Scene.open`, and close it."""

    account: Account
    key: Issued

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        self.engine: AsyncEngine = slow_engine(database_url)
        self.accounts = Accounts(self.engine)
        self.keys = Keys(self.engine)
        self.books = Books(self.engine)
        self.admission = Admission(database_url)
        self.settlement = Settlement(database_url)
        self.prices: dict[str, PriceVersion] = {}

    @classmethod
    async def open(cls, database_url: str) -> "Scene":
        """Make the account, its key and the models."""
        scene = cls(database_url)
        scene.account = await scene.accounts.create(NewAccount(name="Ada", balance_nanos=10 * USD))
        scene.key = await scene.keys.create(NewKey(account_id=scene.account.id, name="prod"))
        await scene.sell("talker", TOKENS)
        await scene.sell("painter", REQUEST)
        return scene

    @classmethod
    async def open_beside(cls, first: "Scene") -> "Scene":
        """Make another account with a key, for the same models."""
        scene = cls(first.database_url)
        scene.account = await scene.accounts.create(NewAccount(name="Grace", balance_nanos=10 * USD))
        scene.key = await scene.keys.create(NewKey(account_id=scene.account.id, name="prod"))
        scene.prices = first.prices
        return scene

    async def close(self) -> None:
        """Close all connections."""
        await self.admission.close()
        await self.settlement.close()
        await self.engine.dispose()

    async def sell(
        self, name: str, components: tuple[PriceComponent, ...], policy: OutcomePolicy | None = None
    ) -> None:
        """Put a model into the catalog, at a price."""
        spec = {"outcome": msgspec.to_builtins(policy)} if policy else {}
        connection = await asyncpg.connect(self.database_url)
        model_id = await connection.fetchval(
            "insert into model (name, spec) values ($1, $2) returning id", name, msgspec.json.encode(spec).decode()
        )
        row = await connection.fetchrow(
            "insert into price_version (model_id, components, outcome, valid_from, source) "
            "values ($1, $2, $3, now(), 'test') returning id, valid_from",
            model_id,
            msgspec.json.encode([{"unit": one.unit, "picos": one.picos} for one in components]).decode(),
            msgspec.json.encode(msgspec.to_builtins(policy)).decode() if policy else None,
        )
        await connection.close()
        self.prices[name] = PriceVersion(row["id"], model_id, components, row["valid_from"], policy or OutcomePolicy())

    async def admit(
        self,
        model: str = "talker",
        *,
        hold_nanos: int = USD // 100,
        task: Task = "chat",
        keep: bool = False,
        webhook: str | None = None,
    ) -> str:
        """Admit a call; answers its id."""
        request_id = new_request_id()
        await self.admission.admit(
            Opening(
                id=request_id,
                account_id=self.account.id,
                api_key_id=self.key.id,
                model_id=self.prices[model].model_id,
                price_version_id=self.prices[model].id,
                pool="fake",
                task=task,
                hold_nanos=hold_nanos,
                deadline_s=60,
                gateway="test",
                keep=keep,
                idempotency_key=request_id if keep else None,
                body_hash=b"body",
                payload=b"payload" if keep else None,
                webhook=webhook,
                webhook_events=("completed",),
            )
        )
        return request_id

    async def settle(
        self,
        request_id: str,
        model: str = "talker",
        *,
        outcome: Outcome = "succeeded",
        units: Units | None = None,
        began: bool = True,
        **fields: Any,
    ) -> int:
        """End a call as a settler would; answers the charge."""
        measured = units or Units(input_tokens=10, output_tokens=7)
        charge = charge_nanos(self.prices[model], measured, outcome, self.prices[model].outcome, began)
        ending = Ending(
            id=request_id,
            charge_nanos=charge,
            price_version_id=self.prices[model].id,
            outcome=outcome,
            reason=OUTCOME_REASONS[outcome],
            attempt=fields.pop("attempt", 1),
            worker="w1",
            units=measured,
            phases=Phases(queue_us=100, forward_us=2000),
            forward_began=began,
            **fields,
        )
        return (await self.settlement.settle([ending]))[0].charge_nanos

    async def call(self, model: str = "talker", **fields: Any) -> str:
        """Admit and settle a call; answers its id."""
        asked = {name: fields.pop(name) for name in ("task", "keep", "webhook") if name in fields}
        request_id = await self.admit(model, **asked)
        await self.settle(request_id, model, **fields)
        return request_id

    async def tamper(self, *statements: str) -> None:
        """Change what nothing of ours would: no trigger watches, no constraint holds."""
        connection = await asyncpg.connect(self.database_url)
        await connection.execute("set session_replication_role = replica")
        for name in ("account_books_check", "account_available_check", "usage_charge_check"):
            table = name.partition("_")[0]
            await connection.execute(f"alter table {table} drop constraint if exists {name}")
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    @asynccontextmanager
    async def tampering(self, statement: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """Tamper for the length of a block, in a transaction that only the block sees."""
        async with self.engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            transaction = driver.transaction()
            await transaction.start()
            await driver.execute("set local session_replication_role = replica")
            await driver.execute(statement)
            yield driver
            await transaction.rollback()
