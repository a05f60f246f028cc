"""The checks that are one SQL file each, in the order of the invariants."""

from importlib.resources import files

import asyncpg
import msgspec

from gateway.ledger.books.figures import MOST_OFFENDERS, Check, Verdict
from gateway.ledger.books.window import ALL_TIME, Window

SNAPSHOT_TIMEOUT_S = 600.0


class Statement(msgspec.Struct, frozen=True):
    """What a SQL file checks. The file's name is its invariant and its subject."""

    file: str
    statement: str
    left: str
    right: str
    of_window: bool = False
    """Whether it goes row by row, and so through one window of time after another ($1 to before $2)."""

    @property
    def invariant(self) -> str:
        """The invariant the statement is part of."""
        return "I" + self.file.split("_")[0].removeprefix("i").lstrip("0")


STATEMENTS = (
    Statement("i01_held", "After drain, nothing is held.", "held by accounts", "zero"),
    Statement(
        "i02_figures",
        "Each account's top-ups are what it has available, held and spent.",
        "topped up",
        "available + held + spent",
    ),
    Statement(
        "i02_outside",
        "Each account's top-ups are what the ledger brought in from outside.",
        "topped up",
        "ledger, from outside",
    ),
    Statement(
        "i02_adjusted",
        "Each adjustment has two sides and a reason.",
        "adjustments",
        "with two sides and a reason",
    ),
    Statement("i02_sums", "Each ledger transaction sums to zero.", "sum of all entries", "zero", of_window=True),
    Statement(
        "i03_ledger",
        "Each account has spent what the ledger charged it, less what it refunded.",
        "spent",
        "ledger charges less refunds",
    ),
    Statement(
        "i03_usage",
        "Each account has spent what its usage rows were charged, less what was refunded of them.",
        "spent",
        "usage charges less refunds",
    ),
    Statement(
        "i03_revenue",
        "What accounts have spent is what charges less refunds brought the ledger as revenue.",
        "spent",
        "ledger revenue",
    ),
    Statement(
        "i03_refunds",
        "What was refunded of a request is at most its charge, to who was charged.",
        "refunded",
        "refunded within the charges",
    ),
    Statement(
        "i03_refunded",
        "Each refund has its ledger transaction of the same amount, and each such transaction its refund.",
        "refunded",
        "ledger refunds",
    ),
    Statement(
        "i04_charges",
        "Each finished request has one usage row and one charge of the same amount.",
        "usage rows",
        "ledger charges of the same request and amount",
        of_window=True,
    ),
    Statement("i04_open", "No request is both open and finished.", "open requests with a usage row", "zero"),
    Statement("i05_charge", "No charge is below zero or above its hold.", "usage rows", "within their hold"),
    Statement(
        "i06_available", "No account is below zero, or below its credit limit.", "accounts", "within their limit"
    ),
    Statement(
        "i07_accepted",
        "Each accepted request exists: it is open or finished.",
        "accepted ids that are kept",
        "open or finished",
    ),
    Statement("i07_deadline", "No request is open past its deadline.", "open past the deadline", "zero"),
    Statement(
        "i08_holds",
        "Each account's hold is that of its open requests: a refused call left none.",
        "held by accounts",
        "holds of open requests",
    ),
    Statement(
        "i08_budgets",
        "Each key's use is its open holds and its charges less refunds: a refused call left none.",
        "used of budgets",
        "holds, and charges less refunds",
    ),
    Statement(
        "i08_limits",
        "Each budget of a period has used the holds and charges of what was admitted in it, less refunds.",
        "used of budgets",
        "holds, and charges less refunds",
    ),
    Statement(
        "i08_places",
        "Each limit of concurrent requests counts those that are open: none keeps a place for ever.",
        "places taken",
        "open requests",
    ),
    Statement("i08_rows", "Nothing is kept of a request that was never opened.", "payloads", "of open requests"),
    Statement("i10_outputs", "Each kept output belongs to a finished request.", "kept outputs", "of finished requests"),
    Statement(
        "i11_webhooks",
        "Each finished request with a webhook has one event, delivered, due, or given up after it was tried.",
        "kept requests with a webhook",
        "with an event of their end",
    ),
    Statement(
        "i12_payloads",
        "Each kept open request has its payload, so that an emptied Redis is rebuilt.",
        "kept open requests",
        "with their payload",
    ),
    Statement(
        "i13_rollups",
        "Each hourly sum is the sum of its usage rows, in every measure.",
        "charged by rollups",
        "charged by usage rows",
        of_window=True,
    ),
    Statement(
        "i13_days",
        "Each sum of a closed day is that of its hours.",
        "charged by days",
        "charged by their hours",
        of_window=True,
    ),
    Statement(
        "i13_charges",
        "Each sum that statements are made of is that of its usage rows.",
        "charged by statements",
        "charged by usage rows",
        of_window=True,
    ),
    Statement(
        "i13_day_keys",
        "Each sum of a key on a closed day is that of its models.",
        "charged by keys on days",
        "charged by their hours",
        of_window=True,
    ),
    Statement(
        "i13_day_models",
        "Each sum of a model on a closed day is that of its keys.",
        "charged by models on days",
        "charged by their hours",
        of_window=True,
    ),
    Statement(
        "i13_keys", "Each sum of a key is that of its models.", "charged by keys", "charged by rollups", of_window=True
    ),
    Statement(
        "i13_models",
        "Each sum of a model is that of its keys.",
        "charged by models",
        "charged by rollups",
        of_window=True,
    ),
)


async def check(
    connection: "asyncpg.Connection[asyncpg.Record]",
    statement: Statement,
    open_requests: int,
    window: Window = ALL_TIME,
) -> Check:
    """Run one statement's file in the snapshot of `connection`."""
    text = (files("gateway.ledger.books") / "sql" / f"{statement.file}.sql").read_text("utf-8")
    row = await connection.fetchrow(text, *(window.bounds if statement.of_window else ()), timeout=SNAPSHOT_TIMEOUT_S)
    assert row is not None
    verdict: Verdict = "broken" if row["broken"] else "holds"
    note = ""
    if statement.file == "i01_held" and open_requests:
        verdict, note = "not drained", f"{open_requests} open"
    return Check(
        invariant=statement.invariant,
        statement=statement.statement,
        left_name=statement.left,
        left=int(row["left_figure"]),
        right_name=statement.right,
        right=int(row["right_figure"]),
        difference=int(row["left_figure"]) - int(row["right_figure"]),
        verdict=verdict,
        broken=row["broken"],
        offenders=tuple((row["offenders"] or [])[:MOST_OFFENDERS]),
        note=note,
    )
