"""A backtest is worked off by one settler or another, to the figures that rating by hand gives, or not at all."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from gateway.contract.states import OUTCOMES
from gateway.contract.units import UNIT_NAMES, Units
from gateway.db.session import slow_engine
from gateway.ledger.accounts import NewAccount
from gateway.ledger.keys import NewKey
from gateway.pricing.backtest import Backtest, DiscountDraft, Draft, PriceDraft, digest_of
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent, PriceVersion
from gateway.pricing.rate import charge_nanos
from gateway.pricing.terms import Terms
from gateway.reports.backtest import jobs
from gateway.reports.backtest.jobs import Backtests
from gateway.reports.backtest.runner import BacktestRunner
from tests.ledger.scene import USD, Scene
from tests.reports.week import settle_a_week

DEARER = (PriceComponent("input_token", 420_001), PriceComponent("output_token", 1_333_337))
MINIMUM = 123_457
WITHIN_S = 90.0


class Desk:
    """A business with some days of usage, and whoever rates that again."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.jobs = Backtests(scene.engine)

    @property
    def draft(self) -> PriceDraft:
        """Answer a dearer price of the talker."""
        return PriceDraft(
            model_id=self.scene.prices["talker"].model_id, model="talker", components=DEARER, minimum_nanos=MINIMUM
        )

    async def begin(self, draft: Draft | None = None) -> str:
        """Ask for a backtest; answers its id."""
        return (await self.jobs.begin(draft or self.draft, 7, "ada")).id

    async def by_hand(self) -> dict[int, tuple[int, int, int]]:
        """Rate each row of the talker; answers requests, charges of then and charges under the draft, by key."""
        price = PriceVersion(0, self.draft.model_id, DEARER, None, OutcomePolicy(), MINIMUM)  # type: ignore[arg-type]
        found: dict[int, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
        db = await asyncpg.connect(self.scene.database_url)
        for row in await db.fetch("select * from usage where model_id = $1", self.draft.model_id):
            units = Units(*(row[name] for name in UNIT_NAMES))
            outcome = OUTCOMES[row["outcome"]]
            charge = charge_nanos(price, units, outcome, price.outcome, row["forward_began"], Terms())
            count, before, after = found[row["api_key_id"]]
            charged = min(charge, row["hold_nanos"])
            found[row["api_key_id"]] = (count + 1, before + row["charge_nanos"], after + charged)
        await db.close()
        return dict(found)

    @asynccontextmanager
    async def usage_is_locked(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """Let nobody read usage for the length of a block: who rates it stands still, amid a job."""
        db = await asyncpg.connect(self.scene.database_url)
        async with db.transaction():
            await db.execute("lock table usage in access exclusive mode")
            yield db
        await db.close()

    async def stands_still(self, settlers: int = 1) -> None:
        """Wait until so many wait for usage."""
        db = await asyncpg.connect(self.scene.database_url)
        end = asyncio.get_running_loop().time() + WITHIN_S
        while await db.fetchval(_WAITING) < settlers:
            assert asyncio.get_running_loop().time() < end, "nobody comes to the usage"
            await asyncio.sleep(0.01)
        await db.close()

    async def silent(self) -> None:
        """Let time pass in which nothing was heard of what is running."""
        db = await asyncpg.connect(self.scene.database_url)
        await db.execute(f"update backtest set updated_at = updated_at - interval '{jobs.SILENT_S + 1} s'")
        await db.close()


_WAITING = """
select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"""


@pytest.fixture
async def desk(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr(jobs, "SILENT_S", 3600)  # who is heard of stays so while the machine stalls
    monkeypatch.setattr("gateway.reports.backtest.past.MOST_S", 60.0)
    scene = await Scene.open(database_url)
    bob = await scene.accounts.create(NewAccount(name="Bob", balance_nanos=10 * USD))
    bobs = await scene.keys.create(NewKey(account_id=bob.id, name="bob's"))
    second = await scene.keys.create(NewKey(account_id=scene.account.id, name="second"))
    owners = [(scene.account, scene.key), (scene.account, second), (bob, bobs)]
    await settle_a_week(scene, owners, hours=30, calls=3)
    yield Desk(scene)
    await scene.close()


async def check(desk: Desk, done: Backtest) -> None:
    """Hold a result against what rating by hand gives, for each key, each account and in all."""
    assert (done.state, done.failure) == ("done", "")
    assert done.result is not None
    hand = await desk.by_hand()
    assert sum(count for count, _, _ in hand.values()) > 20
    told = {each.id: each.sums for each in done.result.by_key}
    assert {id_: (one.requests, one.before_nanos, one.after_nanos) for id_, one in told.items()} == hand
    accounts: dict[int, int] = defaultdict(int)
    for each in done.result.by_key:
        accounts[each.account_id] += each.sums.after_nanos
    assert {each.id: each.sums.after_nanos for each in done.result.by_account} == accounts
    total = done.result.total
    assert (total.requests, total.before_nanos, total.after_nanos) == tuple(map(sum, zip(*hand.values(), strict=True)))
    assert total.after_nanos > total.before_nanos
    assert done.rows_done == done.rows_in_all == total.requests
    assert done.digest == digest_of(desk.draft)


async def test_a_backtest_finds_what_rating_by_hand_does(desk: Desk) -> None:
    id_ = await desk.begin()
    assert (await desk.jobs.read(id_)).state == "waiting"
    assert await BacktestRunner(desk.scene.engine).run_one()
    await check(desk, await desk.jobs.read(id_))
    assert not await BacktestRunner(desk.scene.engine).run_one()


async def test_a_discount_is_rated_off_all_models_of_one_account(desk: Desk) -> None:
    id_ = await desk.begin(DiscountDraft(account_id=desk.scene.account.id, discount_ppm=1_000_000))
    await BacktestRunner(desk.scene.engine).run_one()
    done = await desk.jobs.read(id_)
    assert done.result is not None
    assert [each.id for each in done.result.by_account] == [desk.scene.account.id]
    assert done.result.total.after_nanos == 0
    db = await asyncpg.connect(desk.scene.database_url)
    charged = await db.fetchval("select sum(charge_nanos) from usage where account_id = $1", desk.scene.account.id)
    await db.close()
    assert done.result.total.before_nanos == charged


async def test_one_that_is_cancelled_amid_its_work_has_no_result(desk: Desk) -> None:
    id_ = await desk.begin()
    async with desk.usage_is_locked():
        running = asyncio.create_task(BacktestRunner(desk.scene.engine).run_one())
        await desk.stands_still()
        assert (await desk.jobs.read(id_)).state == "running"
        assert (await desk.jobs.cancel(id_)).state == "cancelled"
    assert await running
    told = await desk.jobs.read(id_)
    assert (told.state, told.result) == ("cancelled", None)
    assert not await BacktestRunner(desk.scene.engine).run_one()
    assert (await desk.jobs.cancel(id_)).state == "cancelled"


async def test_another_settler_takes_over_what_a_dead_one_left_behind(desk: Desk) -> None:
    id_ = await desk.begin()
    dead = slow_engine(desk.scene.database_url)
    async with desk.usage_is_locked():
        running = asyncio.create_task(BacktestRunner(dead).run_one())
        await desk.stands_still()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await dead.dispose()
    other = BacktestRunner(desk.scene.engine)
    assert not await other.run_one(), "it was taken over while something was heard of it"
    await desk.silent()
    assert await other.run_one()
    await check(desk, await desk.jobs.read(id_))


async def test_one_that_was_only_paused_changes_nothing_afterwards(desk: Desk) -> None:
    """Both rate it, as the first was thought dead: the first result is the only one, and it is whole."""
    id_ = await desk.begin()
    slow = slow_engine(desk.scene.database_url)
    async with desk.usage_is_locked():
        first = asyncio.create_task(BacktestRunner(slow).run_one())
        await desk.stands_still()
        await desk.silent()
        second = asyncio.create_task(BacktestRunner(desk.scene.engine).run_one())
        await desk.stands_still(2)
    assert all(await asyncio.gather(first, second))
    done = await desk.jobs.read(id_)
    await check(desk, done)
    assert await desk.jobs.read(id_) == done
    await slow.dispose()
