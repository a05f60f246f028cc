"""Budgets, rates and places: exact whatever comes together, and given back when a request ends."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.session import slow_engine
from gateway.errors import FaregateError, InvalidRequest, NotFound, PaymentRequired, TooManyRequests
from gateway.ledger.admission import Admission
from gateway.ledger.audit import Actor
from gateway.ledger.books.statements import STATEMENTS, check
from gateway.ledger.limit_records import LimitChanges, RateLimit
from gateway.ledger.limits import LimitStore, Owner
from gateway.ledger.standing import Limit
from tests.ledger.patience import amid_a_day
from tests.ledger.till import HOLD, Till, ended, opened

RICH = 10**15
LIMITS = "truncate spending_limit, rate_limit, limit_alert"


class Gate:
    """A till with limits on an account or its key."""

    def __init__(self, till: Till, engine: AsyncEngine) -> None:
        self.till = till
        self.store = LimitStore(engine)

    async def payer(self) -> tuple[int, int]:
        """Make a rich account with a key; answers the ids of both."""
        return await self.till.payer(RICH)

    async def limit(self, owner: str, number: int, by: Actor | None = None, **limits: Any) -> None:
        """Set limits: budgets by their period, rates by what they are of."""
        budgets = {name: limits[name] for name in limits if name in ("day", "week", "month", "total")}
        rates = {
            name: RateLimit(most=most) if isinstance(most, int) else most
            for name, most in limits.items()
            if name not in budgets
        }
        await self.store.change(Owner(owner, number), LimitChanges(budgets=budgets, rates=rates), by)  # type: ignore[arg-type]

    async def at_once(self, payer: tuple[int, int], calls: int, *, hold: int = HOLD, tokens: int = 0) -> list[str]:
        """Ask for many requests at once over two gateways; answers the ids of those that were admitted."""
        other = Admission(self.till.database_url)
        openings = [opened(payer, hold, tokens=tokens, limited=n % 3 == 0) for n in range(calls)]
        gates = [self.till.admission, other]
        answers = await asyncio.gather(
            *(gates[n % 2].admit(opening) for n, opening in enumerate(openings)), return_exceptions=True
        )
        await other.close()
        for answer in answers:
            assert not isinstance(answer, BaseException) or isinstance(answer, PaymentRequired | TooManyRequests), (
                answer
            )
        return [opening.id for opening, answer in zip(openings, answers, strict=True) if isinstance(answer, tuple)]

    async def green(self) -> bool:
        """Say whether what limits count is what is open and charged."""
        checks = [
            await check(self.till.db, one, 0)
            for one in STATEMENTS
            if one.file in ("i08_limits", "i08_places", "i08_holds")
        ]
        return all(one.verdict == "holds" for one in checks) and await self.till.broken_books() == []


@pytest.fixture
async def gate(module_database_url: str) -> AsyncIterator[Gate]:
    engine = slow_engine(module_database_url)
    amid_a_day()
    async with Till(module_database_url, empty=True) as till:
        await till.db.execute(LIMITS)
        yield Gate(till, engine)
    await engine.dispose()


async def refusal(gate: Gate, payer: tuple[int, int], hold: int = HOLD, **fields: Any) -> FaregateError:
    """Have a request refused; answers the error."""
    with pytest.raises((PaymentRequired, TooManyRequests)) as caught:
        await gate.till.admission.admit(opened(payer, hold, **fields))
    assert isinstance(caught.value, FaregateError)
    return caught.value


async def test_a_budget_for_100_lets_exactly_100_of_a_thousand_through(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], day=100 * HOLD)
    assert len(await gate.at_once(payer, 1_000)) == 100
    assert await gate.till.count("open_request") == 100
    assert await gate.green()


@pytest.mark.parametrize("owner", ["account", "key"])
@pytest.mark.parametrize("period", ["week", "month", "total"])
async def test_a_budget_of_any_period_and_owner_is_exact(gate: Gate, owner: str, period: str) -> None:
    payer = await gate.payer()
    await gate.limit(owner, payer[owner == "key"], None, **{period: 10 * HOLD})
    assert len(await gate.at_once(payer, 80)) == 10
    assert await gate.green()


async def test_what_a_request_did_not_use_of_a_budget_comes_back(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], day=2 * HOLD)
    first = await gate.at_once(payer, 5)
    await gate.till.settlement.settle([ended(first[0], HOLD // 4), ended(first[1], HOLD // 4)])
    assert len(await gate.at_once(payer, 5)) == 1  # half a hold is used, one and a half are left
    assert await gate.green()


async def test_rates_are_never_above_their_limit_in_any_window(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], requests=40)
    await gate.limit("account", payer[0], tokens=3_000)
    before = datetime.now(UTC)
    for _ in range(3):
        await gate.at_once(payer, 30, tokens=70)
    # Time passes: what is counted grows older by so many seconds, and more comes.
    for seconds in (20, 15, 26, 59, 2, 61):
        await age(gate, seconds)
        await gate.at_once(payer, 50, tokens=70)
    instants = [row["created_at"] for row in await gate.till.db.fetch("select created_at from open_request order by 1")]
    assert len(instants) > 100
    assert before - timedelta(seconds=200) < instants[0] < instants[-1]
    for n, start in enumerate(instants):
        inside = sum(1 for other in instants[n:] if other - start < timedelta(seconds=60))
        assert inside <= 40
        assert inside * 70 <= 3_000


async def age(gate: Gate, seconds: int) -> None:
    """Let time pass for all that was admitted, and for what the rates count."""
    await gate.till.db.execute(f"update open_request set created_at = created_at - interval '{seconds} seconds'")
    await gate.till.db.execute(
        "update rate_limit set second = second - $1, counts = array(select counts[(s + $1) % 61 + 1] "
        "from generate_series(0, 60) s order by s) where what <> 'concurrent'",
        seconds,
    )


async def test_a_rate_has_room_again_once_a_minute_has_passed(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], requests=5)
    assert len(await gate.at_once(payer, 20)) == 5
    await age(gate, 30)
    assert len(await gate.at_once(payer, 20)) == 0
    await age(gate, 31)
    assert len(await gate.at_once(payer, 20)) == 5


async def test_tokens_that_were_not_used_come_back_at_the_second_they_were_counted(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], tokens=1_000)
    (first,) = await gate.at_once(payer, 1, tokens=900)
    assert (await refusal(gate, payer, tokens=200)).code == "rate_limit_exceeded"
    await gate.till.settlement.settle([ended(first)])  # 17 tokens
    assert len(await gate.at_once(payer, 3, tokens=491)) == 2
    row = await gate.till.db.fetchrow("select used, counts from rate_limit")
    assert row["used"] == sum(row["counts"]) == 999


async def test_what_is_settled_long_after_gives_no_tokens_back_twice(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], tokens=1_000)
    (old,) = await gate.at_once(payer, 1, tokens=900)
    await age(gate, 70)
    await gate.at_once(payer, 1, tokens=900)
    await gate.till.settlement.settle([ended(old)])
    assert (await refusal(gate, payer, tokens=200)).code == "rate_limit_exceeded"


async def test_a_request_of_more_tokens_than_the_limit_is_told_that_waiting_will_not_help(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], tokens=1_000)
    error = await refusal(gate, payer, tokens=1_001)
    assert error.retry_after_s is None
    assert "waiting will not help" in error.message


async def test_a_burst_bounds_what_comes_within_two_seconds(gate: Gate) -> None:
    """A second and the one before it, that is: where the machine stalls amid the calls, more of them come to fit."""
    payer = await gate.payer()
    await gate.limit("key", payer[1], requests=RateLimit(most=100, burst=7))
    for many in (7, 14):
        await gate.at_once(payer, 30)
        seconds = [row["second"] for row in await gate.till.db.fetch(SECONDS)]
        assert len(seconds) >= many
        assert max(seconds.count(second) + seconds.count(second - 1) for second in seconds) == 7
        await age(gate, 2)


SECONDS = "select floor(extract(epoch from created_at))::bigint as second from open_request"


@pytest.mark.parametrize("owner", ["account", "key"])
async def test_places_are_exact_and_come_back(gate: Gate, owner: str) -> None:
    payer = await gate.payer()
    await gate.limit(owner, payer[owner == "key"], concurrent=10)
    for together in (1, 3, 10):
        admitted = await gate.at_once(payer, 60)
        assert len(admitted) == 10
        assert await gate.green()
        for begin in range(0, 10, together):
            await gate.till.settlement.settle([ended(one) for one in admitted[begin : begin + together]])
        assert await gate.green()


async def test_a_free_request_is_not_stopped_by_an_exhausted_budget(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], day=HOLD)
    await gate.limit("account", payer[0], month=HOLD)
    await gate.at_once(payer, 1)
    assert (await refusal(gate, payer)).code == "budget_exceeded"
    assert len(await gate.at_once(payer, 3, hold=0)) == 3


async def test_a_refusal_leaves_nothing_and_says_what_is_left_and_when(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], day=3 * HOLD, total=10 * HOLD, requests=100, concurrent=5)
    await gate.at_once(payer, 2)
    before = await gate.till.db.fetch("select * from rate_limit order by what")
    money = await gate.till.money(payer[0])
    error = await refusal(gate, payer, 2 * HOLD)
    assert error.code == "budget_exceeded"
    assert "0.000001 US dollars are left of the key's budget of 0.000003 for this day" in error.message
    assert error.retry_after_s is not None
    assert 0 < error.retry_after_s <= 86_400
    assert {limit.name for limit in error.standing} == {
        "key:budget:day",
        "key:budget:total",
        "key:rate:concurrent",
        "key:rate:requests",
    }
    assert await gate.till.db.fetch("select * from rate_limit order by what") == before
    assert await gate.till.money(payer[0]) == money
    assert await gate.till.count("open_request") == 2
    assert await gate.green()


async def test_the_standing_after_a_request_is_told(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], day=5 * HOLD, requests=60)
    standing = await gate.till.admission.admit(opened(payer, limited=True))
    assert isinstance(standing, tuple)
    day, requests = standing
    assert (day.name, day.most, day.left) == ("key:budget:day", 5 * HOLD, 4 * HOLD)
    assert (requests.name, requests.most, requests.left) == ("key:rate:requests", 60, 59)
    assert isinstance(requests, Limit)
    assert requests.resets_ms is not None
    assert 0 < requests.resets_ms <= 61_000


async def test_a_neighbour_without_limits_is_not_touched_by_those_of_another(gate: Gate) -> None:
    limited, free = await gate.payer(), await gate.payer()
    await gate.limit("key", limited[1], requests=1)
    answers = await asyncio.gather(
        *(gate.till.admission.admit(opened(payer)) for payer in [limited, free] * 20), return_exceptions=True
    )
    assert sum(isinstance(answer, tuple) for answer in answers[0::2]) == 1
    assert answers[1::2] == [()] * 20


async def test_a_new_day_begins_at_midnight_and_old_requests_count_against_the_old_one(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], day=HOLD, week=10 * HOLD)
    (old,) = await gate.at_once(payer, 2)
    await gate.till.db.execute("update spending_limit set since = since - interval '7 days'")  # as if a week had passed
    await gate.till.db.execute("update open_request set created_at = created_at - interval '7 days'")
    (new,) = await gate.at_once(payer, 2)
    assert await gate.green()
    await gate.till.settlement.settle([ended(old, 1)])  # gives nothing back to the new day
    assert (await refusal(gate, payer)).code == "budget_exceeded"
    await gate.till.settlement.settle([ended(new, HOLD // 2)])
    assert await gate.till.db.fetchval("select used_nanos from spending_limit where period = 'day'") == HOLD // 2
    assert await gate.green()


@pytest.mark.parametrize("owner", ["account", "key"])
async def test_a_new_limit_counts_what_there_was_before_it(gate: Gate, owner: str) -> None:
    payer = await gate.payer()
    admitted = await gate.at_once(payer, 6, tokens=50)
    await gate.till.settlement.settle([ended(one, HOLD // 2) for one in admitted[:4]])
    await gate.limit(
        owner, payer[owner == "key"], day=100 * HOLD, total=100 * HOLD, requests=9, tokens=1000, concurrent=4
    )
    shown = await gate.store.show(Owner(owner, payer[owner == "key"]))  # type: ignore[arg-type]
    assert shown.budgets["day"].used_nanos == shown.budgets["total"].used_nanos == 4 * HOLD
    assert shown.rates["requests"].used == 6
    assert shown.rates["tokens"].used == 2 * 50 + 4 * 17
    assert shown.rates["concurrent"].used == 2
    assert await gate.green()
    assert len(await gate.at_once(payer, 9, tokens=0)) == 2  # places
    await gate.till.settlement.settle([ended(one) for one in admitted[4:]])
    assert await gate.green()
    assert len(await gate.at_once(payer, 9, tokens=0)) == 1  # requests


async def test_changing_a_limit_keeps_its_count_and_lifting_forgets_it(gate: Gate) -> None:
    payer = await gate.payer()
    await gate.limit("key", payer[1], day=2 * HOLD, concurrent=9)
    await gate.at_once(payer, 5)
    await gate.limit("key", payer[1], day=3 * HOLD)
    assert len(await gate.at_once(payer, 5)) == 1
    await gate.limit("key", payer[1], day=HOLD)
    assert (await refusal(gate, payer)).code == "budget_exceeded"
    await gate.limit("key", payer[1], day=None)
    assert len(await gate.at_once(payer, 3)) == 3
    assert await gate.till.db.fetchval("select limited from api_key")
    await gate.limit("key", payer[1], concurrent=None)
    assert not await gate.till.db.fetchval("select limited from api_key")
    assert len(await gate.at_once(payer, 20)) == 20


async def test_changes_are_in_the_audit_log_and_strange_ones_are_refused(gate: Gate) -> None:
    payer = await gate.payer()
    by = Actor(name="ada", role="owner", door="api")
    await gate.limit("key", payer[1], by, day=5, requests=RateLimit(most=6, burst=2))
    await gate.limit("key", payer[1], by, day=None)
    rows = await gate.till.db.fetch("select action, changes from audit order by id desc limit 2")
    assert [row["action"] for row in rows] == ["key.limit"] * 2
    assert '"budgets.day": [5, null]' in rows[0]["changes"]
    assert '{"most": 6, "burst": 2}' in rows[1]["changes"] or '"burst": 2' in rows[1]["changes"]
    with pytest.raises(InvalidRequest):
        await gate.limit("key", payer[1], requests=RateLimit(most=6, burst=7))
    with pytest.raises(InvalidRequest):
        await gate.limit("key", payer[1], concurrent=RateLimit(most=6, burst=2))
    with pytest.raises(NotFound):
        await gate.limit("key", 10**9, day=1)
    with pytest.raises(NotFound):
        await gate.limit("account", 10**9, day=1)


async def test_the_books_stay_green_while_limits_change_amid_a_storm(gate: Gate) -> None:
    payers = [await gate.payer() for _ in range(3)]
    done = asyncio.Event()

    async def trade(n: int) -> None:
        while not done.is_set():
            admitted = await gate.at_once(payers[n], 20, tokens=30)
            endings = [ended(one, HOLD // (1 + n % 3)) for n, one in enumerate(admitted)]
            await gate.till.settlement.settle(endings[:1])
            await gate.till.settlement.settle(endings[1:])

    async def meddle() -> None:
        n = 0
        while n < 12 or (await gate.till.count("usage") <= 100 and n < 1000):
            account_id, key_id = payers[n % 3]
            await gate.limit("key", key_id, day=(50 + n) * HOLD, tokens=5_000, concurrent=15 + n)
            await gate.limit("account", account_id, month=10**12, requests=10**6, concurrent=30)
            await gate.limit("key", key_id, day=None if n % 2 else 10**9, concurrent=None if n % 2 else 9)
            n += 1
        done.set()

    await asyncio.gather(*(trade(n) for n in range(3)), meddle())
    assert await gate.till.count("usage") > 100
    assert await gate.till.count("open_request") == 0
    assert await gate.green()
