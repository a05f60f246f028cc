"""Which keys and models changed most between two ranges."""

from datetime import datetime
from typing import Literal

import asyncpg
import msgspec

from gateway.reports.compose import SPENT, Statement, grouped
from gateway.reports.pieces import pieces
from gateway.reports.ranges import Range
from gateway.reports.scope import Question, Scope

MoverKind = Literal["key", "model"]


class Mover(msgspec.Struct, frozen=True, kw_only=True):
    """A key or model whose charges changed."""

    kind: MoverKind
    id: int
    label: str
    charge_nanos: int
    before_nanos: int
    requests: int
    before_requests: int


async def movers_of(
    session: "asyncpg.Connection[asyncpg.Record]",
    closed: datetime,
    kind: MoverKind,
    ranges: tuple[Range, Range],
    scope: Scope,
    limit: int,
) -> list[Mover]:
    """Read the keys, or the models, whose charges changed most."""
    statement = Statement()
    sides = []
    for during in ranges:
        asked = Question(range=during, scope=scope, group_by=(kind,), units=False, latencies=False)
        sides.append(grouped(asked, pieces(asked, closed), statement, SPENT))
    named = "select coalesce(nullif(name, ''), prefix) from api_key" if kind == "key" else "select name from model"
    rows = await session.fetch(
        f"""select id, ({named} where id = m.id) as label, charge, before, requests, before_requests from (
          select coalesce(n.{kind}, b.{kind}) as id, coalesce(n.charge_nanos, 0) as charge,
            coalesce(b.charge_nanos, 0) as before, coalesce(n.requests, 0) as requests,
            coalesce(b.requests, 0) as before_requests
          from ({sides[0]}) n full join ({sides[1]}) b on n.{kind} = b.{kind}) m
        where charge <> before order by abs(charge - before) desc, id limit {statement.put(limit, "bigint")}""",
        *statement.arguments,
    )
    return [
        Mover(
            kind=kind,
            id=row["id"],
            label=row["label"] or str(row["id"]),
            charge_nanos=row["charge"],
            before_nanos=row["before"],
            requests=row["requests"],
            before_requests=row["before_requests"],
        )
        for row in rows
    ]
