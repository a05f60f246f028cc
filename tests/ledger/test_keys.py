"""API keys and the keyring: shown once, found fast, gone within one refresh."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.session import HotSession, slow_engine
from gateway.errors import InvalidRequest, NotFound, Unavailable
from gateway.ledger.accounts import Accounts, NewAccount
from gateway.ledger.keyring import LOOK_UPS_PER_S, Keyring
from gateway.ledger.keys import Keys, NewKey
from gateway.ledger.records import Account


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    made = slow_engine(database_url)
    yield made
    await made.dispose()


@pytest.fixture
async def account(engine: AsyncEngine) -> Account:
    return await Accounts(engine).create(NewAccount(name="Ada", balance_nanos=10**9))


@pytest.fixture
def keys(engine: AsyncEngine) -> Keys:
    return Keys(engine)


@pytest.fixture
async def keyring(database_url: str) -> AsyncIterator[Keyring]:
    session = HotSession(database_url, name="keyring test")
    yield Keyring(session, every_s=0.05)
    await session.close()


async def test_a_key_is_256_random_bits_and_only_its_hash_is_stored(
    keys: Keys, account: Account, database_url: str
) -> None:
    one, other = [await keys.create(NewKey(account_id=account.id)) for _ in range(2)]
    assert one.key.startswith("fg_live_")
    assert len(one.key) == len("fg_live_") + 43
    assert one.key != other.key
    connection = await asyncpg.connect(database_url)
    stored = await connection.fetch("select api_key::text from api_key")
    await connection.close()
    assert one.key not in str(stored)
    assert one.key[12:] not in str(stored)
    assert one.prefix == one.key[:12]


async def test_listing_shows_no_secret_and_filters_by_account(
    keys: Keys, account: Account, engine: AsyncEngine
) -> None:
    other = await Accounts(engine).create(NewAccount(name="Bob"))
    mine = await keys.create(NewKey(account_id=account.id, name="mine", budget_nanos=5))
    await keys.create(NewKey(account_id=other.id))
    assert len(await keys.list()) == 2
    (found,) = await keys.list(account_id=account.id)
    assert (found.id, found.name, found.budget_nanos) == (mine.id, "mine", 5)
    assert not hasattr(found, "key")


async def test_refuses_wrong_keys_by_their_field(keys: Keys, account: Account) -> None:
    with pytest.raises(NotFound) as missing:
        await keys.create(NewKey(account_id=account.id + 1))
    assert missing.value.param == "account_id"
    past = datetime.now(UTC) - timedelta(seconds=1)
    for new, param in (
        (NewKey(account_id=account.id, budget_nanos=-1), "budget_nanos"),
        (NewKey(account_id=account.id, expires_at=past), "expires_at"),
        (NewKey(account_id=account.id, expires_at=datetime(2099, 1, 1)), "expires_at"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            await keys.create(new)
        assert refused.value.param == param


async def test_a_budget_is_changed_and_lifted(keys: Keys, account: Account) -> None:
    made = await keys.create(NewKey(account_id=account.id, budget_nanos=5))
    assert (await keys.set_budget(made.id, 7)).budget_nanos == 7
    assert (await keys.set_budget(made.id, None)).budget_nanos is None
    with pytest.raises(NotFound):
        await keys.set_budget(made.id + 1, 7)


async def test_the_keyring_finds_whole_keys_only(keys: Keys, account: Account, keyring: Keyring) -> None:
    made = await keys.create(NewKey(account_id=account.id, name="prod"))
    await keyring.refresh()
    found = keyring.find(made.key)
    assert found is not None
    assert (found.key_id, found.account_id, found.key_name, found.account_name) == (made.id, account.id, "prod", "Ada")
    for wrong in ("", made.key[:-1], made.key + "x", made.key.upper(), made.prefix, "fg_live_\udcff"):
        assert keyring.find(wrong) is None


async def test_a_revoked_key_is_gone_at_the_next_refresh(keys: Keys, account: Account, keyring: Keyring) -> None:
    made, stays = [await keys.create(NewKey(account_id=account.id)) for _ in range(2)]
    await keyring.refresh()
    shown = await keys.revoke(made.id)
    assert (await keys.revoke(made.id)).revoked_at == shown.revoked_at
    await keyring.refresh()
    assert keyring.find(made.key) is None
    assert keyring.find(stays.key) is not None


async def test_a_suspended_accounts_keys_are_gone_until_it_is_resumed(
    keys: Keys, account: Account, keyring: Keyring, engine: AsyncEngine
) -> None:
    made, revoked = [await keys.create(NewKey(account_id=account.id)) for _ in range(2)]
    await keys.revoke(revoked.id)
    accounts = Accounts(engine)
    await accounts.suspend(account.id)
    await keyring.refresh()
    assert keyring.find(made.key) is None
    await accounts.resume(account.id)
    await keyring.refresh()
    assert keyring.find(made.key) is not None
    assert keyring.find(revoked.key) is None


async def test_an_expired_key_stops_without_a_refresh(
    keys: Keys, account: Account, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    expires_at = datetime.now(UTC) + timedelta(hours=1)
    made = await keys.create(NewKey(account_id=account.id, expires_at=expires_at))
    await keyring.refresh()
    assert keyring.find(made.key) is not None
    with monkeypatch.context() as clock:
        clock.setattr("gateway.ledger.keyring.time.time", expires_at.timestamp)
        assert keyring.find(made.key) is None


async def test_a_new_key_works_at_once_by_one_look_up(keys: Keys, account: Account, keyring: Keyring) -> None:
    await keyring.refresh()
    made = await keys.create(NewKey(account_id=account.id))
    assert keyring.find(made.key) is None
    found = await keyring.look_up(made.key)
    assert found is not None
    assert found.key_id == made.id


async def test_a_flood_of_wrong_keys_shares_few_look_ups(keys: Keys, account: Account, database_url: str) -> None:
    class Counting(HotSession):
        fetches = 0

        async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
            self.fetches += 1
            return await super().fetch(statement, *arguments)

    session = Counting(database_url, name="flood")
    keyring = Keyring(session, every_s=60)
    made = await keys.create(NewKey(account_id=account.id))
    began = time.monotonic()
    answers = await asyncio.gather(*(keyring.look_up(f"fg_live_{n}") for n in range(500)), keyring.look_up(made.key))
    took_s = time.monotonic() - began
    assert answers[:-1] == [None] * 500
    assert answers[-1] is not None
    assert session.fetches <= took_s * LOOK_UPS_PER_S + 2
    await session.close()


async def test_revocation_reaches_a_running_keyring_within_a_second(
    keys: Keys, account: Account, database_url: str
) -> None:
    """By the quickest of three, as the machine may stall."""
    session = HotSession(database_url, name="running")
    keyring = Keyring(session, every_s=0.3)
    stopping = asyncio.Event()
    running = asyncio.create_task(keyring.run(stopping))
    lasted_s: list[float] = []
    while len(lasted_s) < 3 and min(lasted_s, default=1.0) >= 1.0:
        made = await keys.create(NewKey(account_id=account.id))
        assert keyring.find(made.key) or await keyring.look_up(made.key)
        await keys.revoke(made.id)
        began = time.monotonic()
        async with asyncio.timeout(60):
            while keyring.find(made.key) is not None:
                await asyncio.sleep(0.01)
        lasted_s.append(time.monotonic() - began)
    stopping.set()
    await running
    await session.close()
    assert min(lasted_s) < 1.0, lasted_s


async def test_the_last_snapshot_serves_while_postgres_is_away(keys: Keys, account: Account, database_url: str) -> None:
    made = await keys.create(NewKey(account_id=account.id))
    session = HotSession(database_url, name="outage")
    keyring = Keyring(session, every_s=0.05)
    await keyring.refresh()
    await session.close()
    session._url = "postgresql://faregate@127.0.0.1:1/nowhere"
    assert keyring.find(made.key) is not None
    for _ in range(3):
        with pytest.raises(Unavailable):
            await keyring.look_up("fg_live_wrong")
    assert keyring.find(made.key) is not None


async def test_a_look_up_costs_under_three_microseconds(keys: Keys, account: Account, keyring: Keyring) -> None:
    """The trial's whole gateway took 50 microseconds a request; a tenth of the bar is the rule of thumb here.

    On a slower machine, by what that takes for the hash alone: half a microsecond where the bar was set.
    """
    made = await keys.create(NewKey(account_id=account.id))
    await keyring.refresh()

    def once_s(work: Callable[[str], object]) -> float:
        began = time.perf_counter()
        for _ in range(2_000):
            work(made.key)
        return (time.perf_counter() - began) / 2_000

    rounds = [(once_s(keyring.find), once_s(lambda key: sha256(key.encode()).digest())) for _ in range(10)]
    assert min(find_s for find_s, _ in rounds) < max(3e-6, 6 * min(hash_s for _, hash_s in rounds)), rounds


async def test_admins_who_change_the_same_account_at_once_do_not_deadlock(
    keys: Keys, account: Account, engine: AsyncEngine
) -> None:
    accounts = Accounts(engine)
    made = [await keys.create(NewKey(account_id=account.id)) for _ in range(6)]
    await asyncio.gather(
        *(keys.revoke(one.id) for one in made),
        *(keys.create(NewKey(account_id=account.id)) for _ in range(6)),
        *(accounts.suspend(account.id) if n % 2 else accounts.resume(account.id) for n in range(6)),
        *(accounts.top_up(account.id, 1) for _ in range(6)),
    )
