"""What the sweeper, waiting gateways and owners learn of requests."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.contract.events import Choice, Settled, TextOutput, encode_output
from gateway.contract.ids import new_request_id
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.db.session import slow_engine
from gateway.errors import Unavailable
from gateway.ledger.open_requests import MOST_PAYLOAD_BYTES, OpenRequests
from tests.ledger.till import HOLD, Till, ended

ANSWER = TextOutput([Choice("hello")])


@pytest.fixture
async def till(module_database_url: str) -> AsyncIterator[Till]:
    async with Till(module_database_url, empty=True) as made:
        yield made


@pytest.fixture
async def look(till: Till) -> AsyncIterator[OpenRequests]:
    engine = slow_engine(till.database_url)
    yield OpenRequests(engine)
    await engine.dispose()


async def admitted(till: Till, number: int, **fields: object) -> list[str]:
    payer = await till.payer(number * HOLD)
    return [str(await till.admit(payer, **fields)) for _ in range(number)]


async def aged(till: Till, seconds: int) -> None:
    """Make everything that is open older, and its deadline nearer."""
    column = "{0} = {0} - interval '1 second' * $1"
    changes = ", ".join(column.format(name) for name in ("created_at", "deadline_at"))
    await till.db.execute(f"update open_request set {changes}", seconds)


async def test_a_page_tells_what_is_needed_to_put_a_request_back(till: Till, look: OpenRequests) -> None:
    (id_,) = await admitted(till, 1, keep=True, payload=b"input", task="embedding", pool="vllm", model_id=3)
    assert await look.older_than(3600, limit=10) == []
    await aged(till, 3700)
    (row,) = await look.older_than(3600, limit=10)
    assert (row.id, row.payload, row.task, row.pool, row.model_id) == (id_, b"input", "embedding", "vllm", 3)
    assert (row.gateway, row.keep, row.hold_nanos, row.price_version_id) == ("test", True, HOLD, 1)
    assert row.deadline_us - row.created_us == 60_000_000
    assert 3640 <= row.late_s < 3640 + 300


async def test_pages_pass_over_none_while_requests_come_and_go(till: Till, look: OpenRequests) -> None:
    ids = await admitted(till, 25)
    await aged(till, 10)
    seen: list[str] = []
    for _ in range(3):
        page = [row.id for row in await look.older_than(4.0, limit=10)]
        seen += page
        await till.settlement.settle([ended(id_) for id_ in page[:5]])
    assert seen == sorted(ids)
    again = [row.id for row in await look.older_than(4.0, limit=10)]
    assert again == [id_ for id_ in sorted(ids) if id_ not in {*seen[:5], *seen[10:15], *seen[20:25]}]


async def test_a_page_has_a_limit_of_payload_bytes(till: Till, look: OpenRequests) -> None:
    await admitted(till, 5, keep=True, payload=b"x" * (MOST_PAYLOAD_BYTES // 2))
    await aged(till, 10)
    assert [len(await look.older_than(4.0, limit=10)) for _ in range(4)] == [2, 2, 1, 2]


async def test_overdue_requests_come_by_deadline(till: Till, look: OpenRequests) -> None:
    late, later = await admitted(till, 1, deadline_s=2000), await admitted(till, 1, deadline_s=1000)
    await admitted(till, 1, deadline_s=60_000)
    await aged(till, 5000)
    assert [row.id for row in await look.overdue(0.0, limit=10)] == later + late
    assert [row.id for row in await look.overdue(0.0, limit=1)] == later
    assert [row.id for row in await look.overdue(3500, limit=10)] == later
    assert (await look.overdue(0.0, limit=1))[0].late_s >= 4000


async def test_requests_of_a_gateway(till: Till, look: OpenRequests) -> None:
    mine = await admitted(till, 2, gateway="gw-1")
    await admitted(till, 1, gateway="gw-2")
    assert sorted(row.id for row in await look.of_gateway("gw-1", limit=10)) == sorted(mine)


async def test_still_open_are_those_not_settled(till: Till, look: OpenRequests) -> None:
    ids = await admitted(till, 4)
    await till.settlement.settle([ended(ids[0]), ended(ids[2])])
    assert sorted(await look.still_open([*ids, new_request_id()])) == sorted([ids[1], ids[3]])
    assert await look.still_open([]) == []


async def test_the_settlement_of_a_request_can_be_asked_for_again(till: Till, look: OpenRequests) -> None:
    (id_,) = await admitted(till, 1)
    assert await look.settled(id_) is None
    units, phases = Units(*range(10)), Phases(*range(7))
    await till.settlement.settle([ended(id_, 3, units=units, phases=phases, attempt=2)])
    assert await look.settled(id_) == Settled(id_, "succeeded", "done", 3, HOLD, units, phases, 2)
    assert await look.settled(new_request_id()) is None


async def test_an_owner_sees_his_request_from_beginning_to_end(till: Till, look: OpenRequests) -> None:
    payer = await till.payer(HOLD)
    id_ = str(await till.admit(payer, keep=True, payload=b"p", metadata={"a": "b"}, pool="vllm"))
    record = await look.record(payer[0], id_)
    assert record is not None
    assert (record.finished_us, record.outcome, record.pool, record.metadata) == (None, None, "vllm", {"a": "b"})
    assert record.deadline_us == record.created_us + 60_000_000
    await till.settlement.settle([ended(id_, 7, output=encode_output(ANSWER), units=Units(1), attempt=2)])
    record = await look.record(payer[0], id_)
    assert record is not None
    assert record.finished_us is not None
    assert record.finished_us >= record.created_us
    assert (record.output, record.metadata, record.detail, record.pool) == (ANSWER, {"a": "b"}, "", "vllm")
    assert (record.charge_nanos, record.outcome, record.attempt, record.units) == (7, "succeeded", 2, Units(1))


async def test_another_account_sees_nothing(till: Till, look: OpenRequests) -> None:
    payer, stranger = await till.payer(2 * HOLD), await till.payer(HOLD)
    running, finished = str(await till.admit(payer)), str(await till.admit(payer))
    await till.settlement.settle([ended(finished)])
    for id_ in (running, finished, new_request_id()):
        assert await look.record(stranger[0], id_) is None


async def test_pruning_takes_old_idempotency_keys_and_expired_outputs_only(till: Till, look: OpenRequests) -> None:
    payer = await till.payer(10 * HOLD)
    ids = [
        str(await till.admit(payer, keep=True, payload=b"p", idempotency_key=key, body_hash=b"h"))
        for key in ("old", "old but open", "young")
    ]
    await till.settlement.settle([ended(id_, output=encode_output(ANSWER)) for id_ in (ids[0], ids[2])])
    await till.db.execute("update idempotency set created_at = now() - interval '25 hours' where key like 'old%'")
    await till.db.execute("update request_output set expires_at = now() where id = $1", ids[0][4:])
    await look.prune()
    keys = [row["key"] for row in await till.db.fetch("select key from idempotency order by key")]
    assert keys == ["old but open", "young"]
    assert await till.count("request_output") == 1
    record = await look.record(payer[0], ids[0])
    assert record is not None
    assert record.output is None


async def test_an_output_cannot_be_read_once_it_has_expired(till: Till, look: OpenRequests) -> None:
    payer = await till.payer(HOLD)
    id_ = str(await till.admit(payer, keep=True, payload=b"p"))
    await till.settlement.settle([ended(id_, output=encode_output(ANSWER))])
    await till.db.execute("update request_output set expires_at = now()")
    record = await look.record(payer[0], id_)
    assert record is not None
    assert record.output is None


async def test_without_a_database_looking_is_a_503(unused_tcp_port: int) -> None:
    engine = slow_engine(f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/nothing")
    look = OpenRequests(engine)
    calls = look.older_than(1.0, limit=1), look.record(1, new_request_id()), look.prune(), look.still_open([])
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end) for end in ends] == [Unavailable] * 4
    await engine.dispose()
