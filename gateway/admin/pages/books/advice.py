"""What stands beside a check: its SQL, whether its figures are money, where its offenders are, and what to do."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import msgspec

from gateway.ledger.books.figures import Check
from gateway.ledger.books.statements import STATEMENTS

_OTHERS = {
    "Each charge is the measured units at the pinned price version, capped at the hold.": "i03_rated",
    "Executions beyond the charges are explained by kills, pauses and failures on purpose.": "i09_executions",
    "Each kept media file is there, and of the attempt that won.": "i10_media",
}
_MONEY = frozenset(
    {
        "i01_held", "i02_figures", "i02_outside", "i02_sums", "i03_ledger", "i03_usage", "i03_revenue", "i03_rated",
        "i03_refunded", "i03_refunds", "i08_holds", "i08_budgets", "i13_rollups",
    }
)  # fmt: skip
_DO: Mapping[str, str] = {
    "I1": "Something is held though nothing is open: look at the account, and at requests that ended while this ran.",
    "I2": "Money came in or went out without its entry. Find it in the account's ledger, and book a correction.",
    "I3": "A charge does not fit its usage or its price. Compare the request's price lines with its ledger entries; "
    "give back what was too much by a refund, and ask for what was too little outside.",
    "I4": "A request has no charge, or two. Look at its ledger entries; give back a second charge by a correction.",
    "I5": "A charge is above its hold: give back the difference by a refund.",
    "I6": "An account went below what it may. Top it up or adjust it, and look at its latest requests.",
    "I7": "Requests are open past their deadline, or gone: see whether a settler runs, and what it logs.",
    "I8": "A hold or a limit counts what is not there. See whether a settler was killed just now, and verify again.",
    "I9": "Work was done more often than faults explain: look at the attempts of these requests.",
    "I10": "A file is missing or of an attempt that lost: see whether somebody deletes from the blob store.",
    "I11": "An end was not told: redeliver it on the page Webhooks.",
    "I12": "An open request could not be put back into an emptied Redis: cancel it, and its hold goes back.",
    "I13": "An hourly sum is not that of its rows: reports of that hour are wrong, charges are not. Tell the makers.",
}


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows beside a check."""

    file: str
    is_money: bool
    sql: str
    what_to_do: str


class Offender(msgspec.Struct, frozen=True, kw_only=True):
    """Something that contradicts a statement, and where it opens; empty where it has no page."""

    text: str
    href: str


def advice_of(check: Check) -> Advice:
    """Give what stands beside a check, of older releases too."""
    file = _files().get(check.statement, "")
    return Advice(
        file=file, is_money=file in _MONEY, sql=_sql(file), what_to_do=_DO.get(check.invariant, "Look at the rows.")
    )


def offenders_of(check: Check) -> list[Offender]:
    """Give the first that contradict a check, each with its page."""
    return [Offender(text=text, href=_page_of(text)) for text in check.offenders]


def _page_of(text: str) -> str:
    kind, _, rest = text.partition(" ")
    if text.startswith("req_"):
        return f"/admin/requests/{text}"
    if kind in {"account", "key"} and rest.isdigit():
        return f"/admin/{kind}s/{rest}"
    return ""


@lru_cache(maxsize=1)
def _files() -> Mapping[str, str]:
    return {one.statement: one.file for one in STATEMENTS} | _OTHERS


@lru_cache(maxsize=64)
def _sql(file: str) -> str:
    return (files("gateway.ledger.books") / "sql" / f"{file}.sql").read_text("utf-8") if file else ""
