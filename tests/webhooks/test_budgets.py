"""Accounts are told that a budget runs out: each threshold once in its period, signed, and tried again."""

import asyncio

import pytest

from gateway.ledger.keys import Keys
from gateway.ledger.limit_records import LimitChanges
from gateway.ledger.limits import LimitStore, Owner
from gateway.net.addresses import Allowed
from gateway.net.client import guarded_client
from gateway.webhooks.budgets import BudgetAlerts
from tests.ledger.patience import amid_a_day
from tests.ledger.till import HOLD, ended
from tests.webhooks.office import ALLOWED, Office
from tests.webhooks.receiver import Receiver, verify

DUE_NOW = "update limit_alert set due_at = now() where delivered_at is null"


class Treasury:
    """An office whose payer's key has a budget for ten holds a day."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.db = office.till.db
        self.store = LimitStore(office.engine)

    async def begin(self, url: str | None) -> None:
        """Set the budget, and where the account wants to be told."""
        await self.db.execute("truncate spending_limit, rate_limit, limit_alert")
        await self.db.execute("update account set alert_url = $1", url)
        await self.limit(10 * HOLD)

    async def limit(self, nanos: int) -> None:
        """Set the budget of the key."""
        await self.store.change(Owner("key", self.office.payer[1]), LimitChanges(budgets={"day": nanos}))

    async def spend(self, holds: int) -> None:
        """Use so much of it up."""
        request_id = await self.office.till.admit(self.office.payer, holds * HOLD)
        await self.office.till.settlement.settle([ended(str(request_id), holds * HOLD)])

    async def alerts(self, allowed: Allowed = ALLOWED) -> BudgetAlerts:
        """Make what tells, with a client of its own."""
        client = guarded_client(allowed, timeout_s=60.0)
        self.office._clients.append(client)
        return BudgetAlerts(self.office.engine, client, self.office.secrets, timeout_s=60.0)


@pytest.fixture
def treasury(office: Office, monkeypatch: pytest.MonkeyPatch) -> Treasury:
    monkeypatch.setattr("gateway.webhooks.budgets.next_s", lambda tries: 3600.0)  # no pause ends by itself
    amid_a_day()
    return Treasury(office)


async def test_each_threshold_is_told_once_signed_and_says_what_is_left(treasury: Treasury) -> None:
    async with Receiver() as receiver:
        await treasury.begin(receiver.url)
        alerts = await treasury.alerts()
        await treasury.spend(4)
        assert await alerts.look() == 0
        await treasury.spend(1)
        assert (await alerts.look(), await alerts.look()) == (1, 0)
        await treasury.spend(5)
        assert await alerts.look() == 2
        await alerts.round()
        await alerts.round()
    assert sorted(post.told["data"]["percent"] for post in receiver.posts) == [50, 80, 100]
    secret = (await treasury.office.secrets.show(treasury.office.payer[0])).secret
    for post in receiver.posts:
        told = post.told
        assert verify(secret, post)
        assert (told["type"], told["id"]) == ("budget.threshold", post.id)
        assert told["data"]["owner"] == "key"
        assert told["data"]["key_id"] == treasury.office.payer[1]
        assert (told["data"]["period"], told["data"]["limit_nanos"]) == ("day", 10 * HOLD)
        assert told["data"]["resets_at"] > told["created_at"]


async def test_an_alert_that_failed_or_was_cut_off_comes_again_under_the_same_id(treasury: Treasury) -> None:
    async with Receiver(500, 200) as receiver:
        await treasury.begin(receiver.url)
        await treasury.spend(6)
        first, second = await treasury.alerts(), await treasury.alerts()
        await first.look()
        await first.round()
        assert await second.round() == 0  # not due yet
        await treasury.db.execute(DUE_NOW)
        await second.round()
        assert len(receiver.ids) == 2
        assert len(set(receiver.ids)) == 1
        assert await treasury.db.fetchval("select delivered_at is not null and tries = 2 from limit_alert")
        # One that was taken by a settler that died then is due again when its lease ends.
        await treasury.spend(3)
        await second.look()
        await treasury.db.execute(
            "update limit_alert set tries = 1, due_at = now() + interval '1 hour' where percent = 80"
        )
        assert await second.round() == 0
        await treasury.db.execute(DUE_NOW)
        assert await second.round() == 1


async def test_two_settlers_write_each_alert_once(treasury: Treasury) -> None:
    await treasury.begin(None)
    await treasury.spend(9)
    many = [await treasury.alerts() for _ in range(4)]
    assert sum(await asyncio.gather(*(one.look() for one in many))) == 2
    assert await treasury.db.fetchval("select count(*) from limit_alert where url is null") == 2
    assert await many[0].round() == 0  # nobody wants to be told


async def test_a_new_period_and_a_raised_budget_are_told_anew(treasury: Treasury) -> None:
    await treasury.begin(None)
    alerts = await treasury.alerts()
    await treasury.spend(10)
    assert await alerts.look() == 3
    await treasury.limit(12 * HOLD)  # 83 per cent of it: only the last threshold is to be met again
    assert await alerts.look() == 0
    await treasury.spend(2)
    assert await alerts.look() == 1
    await treasury.db.execute("update spending_limit set since = since - interval '1 day'")
    assert await alerts.look() == 0
    await treasury.spend(6)
    assert await alerts.look() == 1


async def test_an_address_that_may_not_be_reached_is_not(treasury: Treasury) -> None:
    async with Receiver() as receiver:
        await treasury.begin(receiver.url)
        await treasury.spend(5)
        alerts = await treasury.alerts(Allowed())
        await alerts.look()
        assert await alerts.round() == 1
        assert receiver.connections == 0
        assert await treasury.db.fetchval("select delivered_at is null and due_at > now() from limit_alert")


async def test_what_a_key_may_spend_in_all_is_told_of_and_again_once_it_was_raised(treasury: Treasury) -> None:
    key_id, keys = treasury.office.payer[1], Keys(treasury.office.engine)
    async with Receiver() as receiver:
        await treasury.begin(receiver.url)
        await treasury.store.change(Owner("key", key_id), LimitChanges(budgets={"day": None}))
        await keys.set_budget(key_id, 10 * HOLD)
        alerts = await treasury.alerts()
        await treasury.spend(4)
        assert await alerts.look() == 0
        await treasury.spend(4)
        many = [await treasury.alerts() for _ in range(3)]
        assert sum(await asyncio.gather(*(one.look() for one in many))) == 2
        assert await alerts.look() == 0
        await keys.set_budget(key_id, 16 * HOLD)  # half of which is used, and was told of
        assert await alerts.look() == 0
        await treasury.spend(5)
        assert await alerts.look() == 1  # 80 per cent, of the new budget
        await keys.set_budget(key_id, 13 * HOLD)
        assert await alerts.look() == 1
        await alerts.round()
    told = [post.told["data"] for post in receiver.posts]
    assert sorted((one["limit_nanos"] // HOLD, one["percent"]) for one in told) == [
        (10, 50),
        (10, 80),
        (13, 100),
        (16, 80),
    ]
    for one in told:
        assert (one["owner"], one["key_id"], one["period"]) == ("key", key_id, "total")
        assert (one["since"], one["resets_at"]) == (None, None)


async def test_a_revoked_key_is_told_of_no_more(treasury: Treasury) -> None:
    key_id, keys = treasury.office.payer[1], Keys(treasury.office.engine)
    await treasury.begin(None)
    await treasury.store.change(Owner("key", key_id), LimitChanges(budgets={"day": None}))
    await keys.set_budget(key_id, 2 * HOLD)
    await treasury.spend(1)
    await keys.revoke(key_id)
    assert await (await treasury.alerts()).look() == 0
