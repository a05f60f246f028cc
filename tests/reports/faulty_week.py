"""A week of trade in which much goes wrong: settlers die amid their work, prices change, calls stay open for hours."""

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import asyncpg
import msgspec

from gateway.contract.ids import new_request_id
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.errors import Unavailable
from gateway.ledger.admission import Opening
from gateway.ledger.endings import Ending
from gateway.ledger.settlement import Settlement
from gateway.pricing.price import PriceComponent, PriceVersion
from gateway.pricing.rate import charge_nanos
from gateway.pricing.terms import Terms, terms_json
from tests.ledger.scene import OUTCOME_REASONS, USD, Scene
from tests.reports.week import instant, move

_OUTCOMES: Any = ("succeeded",) * 6 + ("failed", "cancelled", "expired")
_KILL = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and application_name = 'faregate settlement' and state <> 'idle'"""


class Owner(msgspec.Struct, frozen=True):
    """Who calls, and how much is off for them."""

    account_id: int
    key_id: int
    discount_ppm: int = 0


class Trade:
    """Calls of some owners, settled by two settlers that are killed now and then."""

    def __init__(self, scene: Scene, owners: Sequence[Owner], db: Any, *, seed: int = 11) -> None:
        self.scene = scene
        self.owners = owners
        self.db = db
        self.chance = random.Random(seed)
        self.settlers = [scene.settlement, Settlement(scene.database_url)]
        self.open: list[Ending] = []
        self.kills = 0

    async def week(self, hours: int) -> None:
        """Trade for so many hours before the present one; some calls stay open for several of them."""
        for back in range(hours, 0, -1):
            begun = await instant(self.db)
            if back % 40 == 0:
                await self.reprice()
            if back % 6:
                self.open += [await self.begin() for _ in range(self.chance.randrange(1, 4))]
            self.chance.shuffle(self.open)
            kept = len(self.open) // 3
            ending, self.open = self.open[kept:], self.open[:kept]
            await self.settle(ending)
            await move(self.db, timedelta(hours=back), begun)

    async def begin(self) -> Ending:
        """Admit a call; answers how it is going to end, at the price and the discount of now."""
        owner, model = self.chance.choice(self.owners), self.chance.choice(("talker", "talker", "painter"))
        price, terms = self.scene.prices[model], Terms(discount_ppm=owner.discount_ppm)
        request_id = new_request_id()
        opening = Opening(
            id=request_id,
            account_id=owner.account_id,
            api_key_id=owner.key_id,
            model_id=price.model_id,
            price_version_id=price.id,
            pool="fake",
            task="chat" if model == "talker" else "text-to-image",
            hold_nanos=USD // 100,
            deadline_s=86_400,
            gateway="test",
            terms=terms_json(terms),
        )
        await self.scene.admission.admit(opening)
        return self._ending(request_id, price, terms)

    def _ending(self, request_id: str, price: PriceVersion, terms: Terms) -> Ending:
        draw, outcome = self.chance.randrange, self.chance.choice(_OUTCOMES)
        units = Units(input_tokens=draw(9_999), output_tokens=draw(999), images=draw(2), pixels=draw(10**6))
        began = self.chance.random() < 0.8
        return Ending(
            id=request_id,
            charge_nanos=charge_nanos(price, units, outcome, price.outcome, began, terms),
            price_version_id=price.id,
            outcome=outcome,
            reason=OUTCOME_REASONS[outcome],
            attempt=self.chance.choice((1, 1, 2)),
            worker="w1",
            units=units,
            phases=Phases(queue_us=draw(10**5), forward_us=draw(10**7)),
            forward_began=began,
            cost_nanos=self.chance.choice((None, draw(10**6))),
            gpu_us=draw(10**6),
            route=self.chance.choice(("fake", "elsewhere")),
            terms=terms_json(terms),
        )

    async def settle(self, endings: Sequence[Ending]) -> None:
        """Settle by both settlers at once, one of which may be killed; repeat until one was told that it is done."""
        kill = self.chance.random() < 0.4
        while endings:
            shuffled = [self.chance.sample(list(endings), len(endings)) for _ in self.settlers]
            works = [each.settle(part) for each, part in zip(self.settlers, shuffled, strict=True)]
            tasks = [asyncio.create_task(work) for work in works]
            if kill:
                await asyncio.sleep(self.chance.uniform(0, 0.004))
                self.kills += len(await self.db.fetch(_KILL))
                kill = False
            told = await asyncio.gather(*tasks, return_exceptions=True)
            for answer in told:
                assert isinstance(answer, list | Unavailable), answer
            done = [answer for answer in told if isinstance(answer, list)]
            if done:
                assert all({row.id: row.charge_nanos for row in answer} == _charges(done[0]) for answer in done)
                return

    async def reprice(self) -> None:
        """Make another price of each model; what is open keeps its own."""
        for model, old in list(self.scene.prices.items()):
            rows = tuple(PriceComponent(row.unit, row.picos * 11 // 10 + 1) for row in old.components)
            encoded = msgspec.json.encode([{"unit": row.unit, "picos": row.picos} for row in rows]).decode()
            row = await self.db.fetchrow(_REPRICE, old.model_id, encoded)
            self.scene.prices[model] = PriceVersion(row["id"], old.model_id, rows, row["valid_from"], old.outcome)

    async def close(self) -> None:
        """Close the settler that is not the scene's."""
        await self.settlers[1].close()


def _charges(told: Any) -> dict[str, int]:
    return {row.id: row.charge_nanos for row in told}


_REPRICE = """
insert into price_version (model_id, components, valid_from, source) values ($1, $2, now(), 'test')
returning id, valid_from"""


async def connected(scene: Scene) -> "asyncpg.Connection[asyncpg.Record]":
    """Open a connection of the test's own."""
    return await asyncpg.connect(scene.database_url)
