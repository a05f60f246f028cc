"""`books verify` holds over what really happened, and goes red for each invariant that is broken on purpose."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.blobs.local import LocalBlobs
from gateway.contract.events import MediaOutput, TextOutput, encode_output
from gateway.contract.units import Units
from gateway.ledger.books.figures import BooksReport, Check
from gateway.ledger.books.verify import Books
from gateway.pricing.policy import OutcomePolicy
from gateway.queues.port import QueueUnavailable
from tests.ledger.scene import REQUEST, USD, Scene

SOME = "id = (select min(id::text)::uuid from usage)"
OPEN = (
    "insert into open_request (id, account_id, api_key_id, hold_nanos, deadline_at, model_id, price_version_id, task, "
    "keep, pool, gateway)"
)
BOOK = "insert into ledger_entry (transaction_id, account_id, amount_nanos, kind)"
NOBODY = "'00000000-0000-7000-8000-000000000001'"


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


async def some_calls(scene: Scene) -> None:
    """Make one call of each kind that is charged in its own way."""
    await scene.call()
    await scene.call(task="completion", units=Units(input_tokens=3, cached_tokens=1, output_tokens=1))
    await scene.call(keep=True, output=encode_output(TextOutput([])), webhook="https://receiver.example/")
    await scene.call("painter")
    await scene.call(outcome="failed")
    await scene.call("painter", outcome="cancelled", began=True)
    await scene.call("painter", outcome="cancelled", began=False)
    await scene.call(outcome="expired", units=Units(input_tokens=10**9))  # more than its hold


def check_of(report: BooksReport, start: str) -> Check:
    """Find the check whose statement begins so."""
    return next(one for one in report.checks if one.statement.startswith(start))


def broken(report: BooksReport) -> set[str]:
    """Name the broken invariants."""
    return {one.invariant for one in report.checks if one.verdict == "broken"}


async def test_the_books_of_real_calls_hold(scene: Scene) -> None:
    await some_calls(scene)
    report = await scene.books.verify(allowed_repeats=0)
    assert broken(report) == set()
    assert report.holds
    assert (report.open_requests, report.usage_rows) == (0, 8)
    assert [one.invariant for one in report.checks] == sorted(
        (one.invariant for one in report.checks), key=lambda name: int(name[1:])
    )
    assert {one.invariant for one in report.checks} == {f"I{n}" for n in range(1, 14)}
    spent = (await scene.accounts.show(scene.account.id)).spent_nanos
    assert spent > USD // 100
    for statement in ("Each account has spent", "Each charge is", "What accounts have spent", "Each hourly sum"):
        assert check_of(report, statement).left == check_of(report, statement).right == spent


async def test_the_books_of_an_empty_system_hold(database_url: str) -> None:
    scene = Scene(database_url)
    assert (await scene.books.verify(allowed_repeats=0)).holds
    await scene.close()


async def test_an_open_request_is_not_drained_and_breaks_nothing(scene: Scene) -> None:
    await scene.admit(keep=True)
    report = await scene.books.verify()
    held = check_of(report, "After drain")
    assert (held.verdict, held.note, held.left) == ("not drained", "1 open", USD // 100)
    assert report.holds


ON_PURPOSE = [
    ("I1", "update account set held_nanos = held_nanos + 5, available_nanos = available_nanos - 5"),
    ("I2", "update account set available_nanos = available_nanos + 1"),
    ("I2", "update account set topped_up_nanos = topped_up_nanos + 1, available_nanos = available_nanos + 1"),
    ("I2", f"{BOOK} values ({NOBODY}, -1, 5, 1)"),
    ("I2", "delete from ledger_entry where kind = 1 and account_id > 0"),
    ("I3", "update account set spent_nanos = spent_nanos + 1, available_nanos = available_nanos - 1"),
    ("I3", f"update usage set charge_nanos = charge_nanos + 1 where {SOME}"),
    ("I3", f"update usage set output_tokens = output_tokens + 1000 where {SOME}"),
    ("I3", f"update usage set price_version_id = 999 where {SOME}"),
    ("I3", f"update usage set forward_began = not forward_began, outcome = 2, charge_nanos = 1 where {SOME}"),
    ("I3", "update ledger_entry set amount_nanos = amount_nanos + 1 where account_id = 0"),
    ("I4", f"delete from usage where {SOME}"),
    ("I4", f"delete from ledger_entry where transaction_id in (select id from usage where {SOME})"),
    (
        "I4",
        f"{BOOK} select transaction_id, account_id, amount_nanos, kind from ledger_entry "
        f"where kind = 0 and transaction_{SOME}",
    ),
    (
        "I4",
        f"{OPEN} select id, account_id, api_key_id, 0, now() + interval '1 min', model_id, price_version_id, "
        f"task, false, 'fake', 'test' from usage where {SOME}",
    ),
    ("I5", f"update usage set charge_nanos = hold_nanos + 1 where {SOME}"),
    ("I5", f"update usage set charge_nanos = -1 where {SOME}"),
    ("I6", "update account set available_nanos = -1"),
    ("I6", "update account set kind = 'postpaid', credit_limit_nanos = 5, available_nanos = -6"),
    (
        "I7",
        "insert into idempotency (account_id, api_key_id, key, request_id, body_hash) "
        f"values (1, 1, 'k', {NOBODY}, '')",
    ),
    (
        "I7",
        f"{OPEN} values ({NOBODY}, 1, 1, 0, now() - interval '1 min', 1, 1, 0, false, 'fake', 'test')",
    ),
    ("I8", "update account set held_nanos = held_nanos + 5, available_nanos = available_nanos - 5"),
    ("I8", "update api_key set used_nanos = used_nanos + 1"),
    (
        "I8",
        "insert into spending_limit (owner_kind, owner_id, period, limit_nanos, used_nanos) values (1, 1, 'day', 9, 1)",
    ),
    ("I8", "insert into rate_limit (owner_kind, owner_id, what, most, used) values (0, 1, 'concurrent', 9, 1)"),
    ("I8", f"insert into request_payload (id, payload) values ({NOBODY}, '')"),
    ("I9", f"update usage set attempt = 0 where outcome = 0 and {SOME}"),
    ("I9", f"update usage set attempt = 2 where {SOME}"),
    ("I10", f"insert into request_output (id, detail, expires_at) values ({NOBODY}, '', now())"),
    ("I11", "delete from webhook_event where kind = 2"),
    ("I11", "update webhook_event set due_at = null, tries = 0, delivered_at = null"),
    (
        "I11",
        "insert into webhook_event (request_id, kind, number, account_id, url, host) "
        f"values ({NOBODY}, 2, 0, 1, 'https://x', 'x')",
    ),
    (
        "I12",
        f"{OPEN} values ({NOBODY}, 1, 1, 0, now() + interval '1 min', 1, 1, 0, true, 'fake', 'test')",
    ),
    ("I13", "update usage_rollup set requests = requests + 1 where outcome = 1"),
    (
        "I13",
        "update usage_rollup set output_tokens = output_tokens - 1, input_tokens = input_tokens + 1 where task = 1",
    ),
    ("I13", "delete from usage_rollup where outcome = 1"),
    ("I13", "update usage_rollup set hour = hour - interval '1 hour' where task = 1"),
]


async def test_each_invariant_that_is_broken_on_purpose_is_found(scene: Scene) -> None:
    """Each tampering is tried on the same books, in a transaction that is rolled back."""
    await some_calls(scene)
    await scene.tamper()
    for invariant, statement in ON_PURPOSE:
        async with scene.tampering(statement) as connection:
            report = await scene.books.verify_in(connection, allowed_repeats=0)
        assert invariant in broken(report), f"{invariant} holds after: {statement}"
        assert not report.holds
        found = [one for one in report.checks if one.invariant == invariant and one.verdict == "broken"]
        assert all(one.offenders for one in found), f"no offender is named after: {statement}"
    assert (await scene.books.verify(allowed_repeats=0)).holds


async def test_repeats_are_allowed_as_far_as_faults_explain_them(scene: Scene) -> None:
    await scene.call(attempt=3)
    assert (await scene.books.verify()).holds
    assert (await scene.books.verify(allowed_repeats=2)).holds
    report = await scene.books.verify(allowed_repeats=1)
    assert broken(report) == {"I9"}
    assert check_of(report, "Executions").difference == 2


async def test_a_charge_is_held_against_the_policy_of_its_price_version_and_not_of_today(scene: Scene) -> None:
    await scene.sell("mild", REQUEST, OutcomePolicy(cancelled="full"))
    await scene.call("mild", outcome="cancelled", began=False)
    await scene.tamper('update model set spec = \'{"outcome": {"cancelled": "nothing"}}\'')
    assert (await scene.books.verify()).holds
    await scene.tamper('update price_version set outcome = \'{"cancelled": "nothing"}\'')
    assert broken(await scene.books.verify()) == {"I3"}


async def test_versions_of_an_older_release_are_judged_by_the_policy_of_their_model(scene: Scene) -> None:
    await scene.sell("old", REQUEST, OutcomePolicy(cancelled="full"))
    await scene.call("old", outcome="cancelled", began=False)
    await scene.tamper("update price_version set outcome = null")
    assert (await scene.books.verify()).holds


async def test_a_policy_that_charges_in_full_takes_the_hold(scene: Scene) -> None:
    await scene.sell("strict", REQUEST, OutcomePolicy(failed="full"))
    request_id = await scene.admit("strict", hold_nanos=5)
    await scene.settle(request_id, "strict", outcome="cancelled")
    assert (await scene.books.verify()).holds


async def media_call(scene: Scene, attempt: int, named_attempt: int) -> str:
    """Settle a kept call whose media file bears the number of an attempt; answers the file's name."""
    request_id = await scene.admit(keep=True)
    name = f"2026/11/21/{request_id}-{named_attempt}.mp3"
    output = encode_output(MediaOutput("audio/mpeg", 3, blob=name))
    await scene.settle(request_id, attempt=attempt, output=output)
    return name


def write(folder: Path, name: str) -> None:
    """Write a blob as a worker would."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"mp3")


async def test_kept_media_are_there_and_of_the_winning_attempt(scene: Scene, tmp_path: Path) -> None:
    books = Books(scene.engine, blobs=LocalBlobs(tmp_path))
    won = await media_call(scene, attempt=2, named_attempt=2)
    write(tmp_path, won)
    write(tmp_path, won.replace("-2.mp3", "-1.mp3"))
    report = await books.verify()
    media = check_of(report, "Each kept media")
    assert (media.verdict, media.left, media.right) == ("holds", 1, 1)
    assert media.note.startswith("1 files of attempts that lost")
    (tmp_path / won).unlink()
    assert broken(await books.verify()) == {"I10"}


async def test_media_of_an_attempt_that_lost_are_found(scene: Scene, tmp_path: Path) -> None:
    name = await media_call(scene, attempt=2, named_attempt=1)
    write(tmp_path, name)
    report = await Books(scene.engine, blobs=LocalBlobs(tmp_path)).verify()
    assert broken(report) == {"I10"}
    assert check_of(report, "Each kept media").offenders[0] in name


async def test_media_that_stand_in_the_row_need_no_file(scene: Scene, tmp_path: Path) -> None:
    request_id = await scene.admit(keep=True)
    await scene.settle(request_id, output=encode_output(MediaOutput("audio/wav", 3, data=b"wav")))
    report = await Books(scene.engine, blobs=LocalBlobs(tmp_path)).verify()
    assert report.holds
    assert check_of(report, "Each kept media").left == 1


async def test_what_redis_has_lost_is_told_and_no_fault(scene: Scene) -> None:
    request_id = await scene.admit(keep=True)

    async def all_missing(pool: str, request_ids: object) -> list[str] | None:
        assert (pool, request_ids) == ("fake", [request_id])
        return [request_id]

    async def too_many(pool: str, request_ids: object) -> list[str] | None:
        return None

    async def away(pool: str, request_ids: object) -> list[str] | None:
        raise QueueUnavailable("away")

    for missing, note in ((all_missing, "1 open requests are absent"), (too_many, "too many"), (away, "Redis is away")):
        report = await Books(scene.engine, missing=missing).verify()
        assert report.holds
        assert check_of(report, "Each kept open").note.startswith(note)


async def test_offenders_are_named_and_counted(scene: Scene) -> None:
    ids = [await scene.call() for _ in range(12)]
    await scene.tamper("update usage set charge_nanos = charge_nanos + 1")
    found = check_of(await scene.books.verify(), "Each finished request")
    assert found.broken == 12
    assert len(found.offenders) == 10
    assert set(found.offenders) <= set(ids)
