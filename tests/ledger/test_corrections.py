"""A correction moves money between two sides, once, never beyond what is there, and the books stay green."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from gateway.errors import FaregateError
from gateway.ledger.accounts import NewAccount
from gateway.ledger.audit import Actor
from gateway.ledger.corrections import Corrections, NewCorrection
from gateway.ledger.records import Line
from tests.ledger.scene import USD, Scene

BY = Actor(name="ada@example.org", role="billing", door="dashboard", request_id="page_1")


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    await made.call()
    yield made
    await made.close()


def correction(giver: str, taker: str, nanos: int, **more: Any) -> NewCorrection:
    lines = (Line(side=giver, amount_nanos=-nanos), Line(side=taker, amount_nanos=nanos))
    return NewCorrection(**{"lines": lines, "reason": "booked twice", **more})


async def figures(scene: Scene, account_id: int) -> tuple[int, int, int, int]:
    shown = await scene.accounts.show(account_id)
    return shown.topped_up_nanos, shown.available_nanos, shown.held_nanos, shown.spent_nanos


async def test_corrections_between_all_kinds_of_sides_keep_the_books_green(scene: Scene) -> None:
    corrections = Corrections(scene.engine)
    other = await scene.accounts.create(NewAccount(name="Bob", balance_nanos=USD), BY)
    mine, bobs = f"account:{scene.account.id}", f"account:{other.id}"
    before = await figures(scene, scene.account.id)
    for giver, taker, nanos in (
        ("outside", mine, 7),
        (mine, bobs, 5),
        ("revenue", mine, 3),
        (bobs, "revenue", 1),
        ("revenue", "outside", 11),
    ):
        await corrections.post(correction(giver, taker, nanos), BY)
    topped_up, available, held, spent = before
    assert await figures(scene, scene.account.id) == (topped_up + 5, available + 5, held, spent)
    assert await figures(scene, other.id) == (USD + 4, USD + 4, 0, 0)
    report = await scene.books.verify()
    assert report.holds, [one for one in report.checks if one.verdict == "broken"]
    adjusted = next(one for one in report.checks if one.statement.startswith("Each adjustment"))
    assert adjusted.left == adjusted.right == 5
    listed = await corrections.list()
    assert [line.side for line in listed[0].lines] == ["outside", "revenue"]
    assert {one.reason for one in listed} == {"booked twice"}
    assert len(listed) == 5


async def test_a_repeated_transaction_id_books_nothing_twice(scene: Scene) -> None:
    corrections, number = Corrections(scene.engine), uuid4()
    mine = f"account:{scene.account.id}"
    first = await corrections.post(correction("outside", mine, 9, transaction_id=number), BY)
    after = await figures(scene, scene.account.id)
    assert await corrections.post(correction("outside", mine, 9, transaction_id=number), BY) == first
    assert await figures(scene, scene.account.id) == after
    with pytest.raises(FaregateError) as told:
        await corrections.post(correction("outside", mine, 10, transaction_id=number), BY)
    assert (told.value.status, told.value.param) == (422, "transaction_id")


async def test_what_was_corrected_stands_in_the_audit_log_with_its_effect(scene: Scene) -> None:
    before = await figures(scene, scene.account.id)
    made = await Corrections(scene.engine).post(correction("outside", f"account:{scene.account.id}", 9), BY)
    connection = await asyncpg.connect(scene.database_url)
    row = await connection.fetchrow(
        "select actor, role, door, action, request_id, changes::text from audit where object_id = $1", str(made.id)
    )
    await connection.close()
    assert tuple(row)[:5] == ("ada@example.org", "billing", "dashboard", "ledger.correct", "page_1")
    assert f"[{before[1]}, {before[1] + 9}]" in row["changes"]


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        ({"lines": (Line(side="revenue", amount_nanos=5), Line(side="outside", amount_nanos=-4))}, 400, "not_balanced"),
        ({"lines": (Line(side="revenue", amount_nanos=5), Line(side="revenue", amount_nanos=-5))}, 400, None),
        ({"lines": (Line(side="revenue", amount_nanos=0), Line(side="outside", amount_nanos=0))}, 400, None),
        ({"lines": (Line(side="account:0", amount_nanos=5), Line(side="outside", amount_nanos=-5))}, 400, None),
        ({"lines": (Line(side="account:99", amount_nanos=5), Line(side="outside", amount_nanos=-5))}, 404, None),
        (
            {"lines": (Line(side="account:1", amount_nanos=-11 * USD), Line(side="outside", amount_nanos=11 * USD))},
            422,
            "balance_too_low",
        ),
        ({"reason": " "}, 400, None),
    ],
)
async def test_a_wrong_correction_is_refused_and_changes_nothing(
    scene: Scene, wrong: dict[str, Any], status: int, code: str | None
) -> None:
    before = await figures(scene, scene.account.id)
    with pytest.raises(FaregateError) as told:
        await Corrections(scene.engine).post(correction("outside", "account:1", 5, **wrong), BY)
    assert told.value.status == status
    assert code is None or told.value.code == code
    assert await figures(scene, scene.account.id) == before
    assert await Corrections(scene.engine).list() == []


async def test_holds_are_not_corrected_away(scene: Scene) -> None:
    await scene.admit(hold_nanos=9 * USD)
    with pytest.raises(FaregateError, match="its holds are not"):
        await Corrections(scene.engine).post(correction(f"account:{scene.account.id}", "outside", 2 * USD), BY)
