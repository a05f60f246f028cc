"""A week of usage that really was admitted and settled, with faults in it, moved hour by hour into the past."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

from gateway.contract.phases import Phases
from gateway.contract.states import Outcome
from gateway.contract.units import Units
from gateway.ledger.endings import Ending
from gateway.ledger.records import Account, Issued
from gateway.pricing.rate import charge_nanos
from tests.ledger.scene import OUTCOME_REASONS, Scene

HOURS = 7 * 24
_OUTCOMES: tuple[Outcome, ...] = ("succeeded",) * 7 + ("failed", "cancelled", "expired")
_SHIFTED_ID = (
    "(lpad(to_hex(('x' || substr(replace({0}::text, '-', ''), 1, 12))::bit(48)::bigint - $1), 12, '0') "
    "|| substr(replace({0}::text, '-', ''), 13))::uuid"
)


async def settle_a_week(
    scene: Scene, owners: Sequence[tuple[Account, Issued]], *, hours: int = HOURS, calls: int = 4
) -> None:
    """Settle calls for each hour before the present one, most of them once more: the first end is the only one.

    Each hour's calls are admitted and settled now, then moved to their hour: rows, sums, entries and ids.
    """
    chance = random.Random(7)
    kept = scene.account, scene.key
    connection = await asyncpg.connect(scene.database_url)
    for back in range(hours, 0, -1):
        begun = await instant(connection)
        for _ in range(calls if back % 5 else 0) if calls > 1 else range(calls):
            scene.account, scene.key = chance.choice(list(owners))
            await _call(scene, chance)
        await move(connection, timedelta(hours=back), begun)
    scene.account, scene.key = kept
    await connection.close()


async def _call(scene: Scene, chance: random.Random) -> None:
    model = chance.choice(("talker", "talker", "painter"))
    outcome = chance.choice(_OUTCOMES)
    units = Units(input_tokens=chance.randrange(5000), output_tokens=chance.randrange(900), images=model == "painter")
    began = chance.random() < 0.8
    request_id = await scene.admit(model, task="chat" if model == "talker" else "text-to-image")
    price = scene.prices[model]
    ending = Ending(
        id=request_id,
        charge_nanos=charge_nanos(price, units, outcome, price.outcome, began),
        price_version_id=price.id,
        outcome=outcome,
        reason=OUTCOME_REASONS[outcome],
        attempt=chance.choice((1, 1, 1, 2)),
        worker="w1",
        units=units,
        phases=Phases(queue_us=chance.randrange(10**5), forward_us=chance.randrange(10**7)),
        forward_began=began,
        cost_nanos=chance.choice((None, chance.randrange(10**6))),
        gpu_us=chance.randrange(10**6),
        route=chance.choice(("fake", "elsewhere")),
    )
    await scene.settlement.settle([ending])
    if chance.random() < 0.3:
        await scene.settlement.settle([ending])


async def instant(connection: "asyncpg.Connection[asyncpg.Record]") -> datetime:
    """Read the clock of Postgres."""
    now: datetime = await connection.fetchval("select clock_timestamp()")
    return now


async def move(connection: "asyncpg.Connection[asyncpg.Record]", back: timedelta, begun: datetime) -> None:
    """Move what was settled since an instant so far back: rows, sums, entries and ids.

    The hour may end meanwhile: then what is moved lies in two hours, and what comes next an hour later still.
    """
    ms = int(back.total_seconds() * 1000)
    async with connection.transaction():
        await connection.execute("set local session_replication_role = replica")
        await connection.execute(
            f"update usage set id = {_SHIFTED_ID.format('id')}, created_at = created_at - $2::interval, "
            f"finished_at = finished_at - $2::interval where finished_at >= $3",
            ms,
            back,
            begun,
        )
        await connection.execute(
            f"update ledger_entry set transaction_id = {_SHIFTED_ID.format('transaction_id')}, at = at - $2::interval "
            "where at >= $3 and kind = 0",
            ms,
            back,
            begun,
        )
        await connection.execute(
            "update usage_rollup set hour = hour - $1::interval "
            "where hour >= date_trunc('hour', $2::timestamptz, 'UTC')",
            back,
            begun,
        )
