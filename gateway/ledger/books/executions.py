"""I9: work that was done more than once is explained by faults, and paid once."""

from importlib.resources import files

import asyncpg

from gateway.ledger.books.figures import Check
from gateway.ledger.books.statements import SNAPSHOT_TIMEOUT_S


async def check_executions(connection: "asyncpg.Connection[asyncpg.Record]", allowed_repeats: int | None) -> Check:
    """Compare executions with charges.

    Only who made the faults knows how many repeats they explain (kills + pauses x concurrency + failures
    on purpose); without that number, what is checked is that nothing succeeded without an execution.
    """
    text = (files("gateway.ledger.books") / "sql" / "i09_executions.sql").read_text("utf-8")
    row = await connection.fetchrow(text, timeout=SNAPSHOT_TIMEOUT_S)
    assert row is not None
    repeats = int(row["executions"]) - row["executed"]
    too_many = max(0, repeats - allowed_repeats) if allowed_repeats is not None else 0
    offenders = row["offenders"] or (row["repeated"] if too_many else None)
    return Check(
        invariant="I9",
        statement="Executions beyond the charges are explained by kills, pauses and failures on purpose.",
        left_name="executions",
        left=int(row["executions"]),
        right_name="charges of executed requests",
        right=row["executed"],
        difference=repeats,
        verdict="broken" if row["broken"] or too_many else "holds",
        broken=row["broken"] + too_many,
        offenders=tuple(offenders or ()),
        note=f"{allowed_repeats} repeats explained" if allowed_repeats is not None else "repeats are not bounded here",
    )
