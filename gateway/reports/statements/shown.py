"""How a statement reads: the same words and digits in HTML, PDF and on paper."""

from typing import Any

from gateway.money import usd_text
from gateway.reports.statements.month import read_month
from gateway.reports.statements.records import Statement, UnitLine

TITLES = {"top_up": "Top-up", "refund": "Refund", "correction": "Correction"}
_UNITS = {
    "request": "requests",
    "input_token": "input tokens",
    "cached_input_token": "cached input tokens",
    "output_token": "output tokens",
    "reasoning_token": "reasoning tokens",
    "character": "characters",
    "image": "images",
    "megapixel": "megapixels",
    "step": "steps",
    "audio_second": "seconds of sound",
    "video_second": "seconds of video",
    "discount": "discount",
    "rounding": "rounding, minimums and caps",
}


def dollars(nanos: int) -> str:
    """Write an amount to the last nano, with cents at least."""
    return ("-" if nanos < 0 else "") + "$" + decimals(usd_text(abs(nanos)), cents=True)


def decimals(text: str, *, cents: bool = False) -> str:
    """Write an exact decimal with thousands; with `cents` to two places at least."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, rest = digits.partition(".")
    rest = rest.ljust(2, "0") if cents else rest
    return f"{sign}{int(whole):,}" + (f".{rest}" if rest else "")


def _line(line: UnitLine) -> dict[str, str]:
    name = _UNITS.get(line.unit, line.unit) + (f" ({line.when})" if line.when else "")
    sign, amount = ("-", line.amount_usd[1:]) if line.amount_usd.startswith("-") else ("", line.amount_usd)
    return {
        "unit": name,
        "quantity": decimals(line.quantity) if line.quantity else "",
        "price": f"${line.price_usd}" if line.price_usd else "",
        "amount": f"{sign}${decimals(amount, cents=True)}",
    }


def _who(statement: Statement) -> str:
    payer = f"{statement.account} (account {statement.account_id})"
    if statement.key_id is None:
        return payer
    return f"{statement.key or 'API key'} (key {statement.key_id}), paid by {payer}"


def _sums(statement: Statement) -> list[dict[str, str]]:
    """Write the line that sums: of an account's balance, or of what a key has spent."""
    minus, opening, closing = "\N{MINUS SIGN}", statement.opening_nanos, statement.closing_nanos
    rows = [("Charges", "+", statement.charge_nanos), ("Refunds", minus, statement.refund_nanos)]
    if statement.key_id is None:
        rows = [
            ("Opening balance", "", opening),
            ("Top-ups", "+", statement.top_up_nanos),
            ("Charges", minus, statement.charge_nanos),
            ("Refunds", "+", statement.refund_nanos),
            ("Corrections", "+", statement.correction_nanos),
            ("Closing balance", "=", closing),
        ]
    else:
        rows = [("Spent before", "", -opening), *rows, ("Spent by its end", "=", -closing)]
    return [{"name": name, "sign": sign, "amount": dollars(nanos)} for name, sign, nanos in rows]


def shown(statement: Statement) -> dict[str, Any]:
    """Write a statement as texts, for templates."""
    month = read_month(statement.month, statement.zone_name)
    local = {each: each.at.astimezone(month.zone) for each in statement.bookings}
    return {
        "title": f"{month.from_at.astimezone(month.zone):%B %Y}",
        "month": statement.month,
        "who": _who(statement),
        "of_key": statement.key_id is not None,
        "zone": statement.zone_name,
        "made_at": f"{statement.made_at.astimezone(month.zone):%Y-%m-%d %H:%M:%S}",
        "provisional": statement.provisional,
        "checksum": statement.checksum,
        "sums": _sums(statement),
        "charges": [
            {
                "model": each.model,
                "version": str(each.price_version),
                "requests": f"{each.requests:,}",
                "free": f"{each.free:,}" if each.free else "",
                "amount": dollars(each.amount_nanos),
                "lines": [_line(line) for line in each.lines],
            }
            for each in statement.charges
        ],
        "charged": dollars(statement.charge_nanos),
        "bookings": [
            {
                "at": f"{local[each]:%Y-%m-%d %H:%M}",
                "kind": TITLES[each.kind],
                "reason": each.reason,
                "request": each.request_id,
                "amount": dollars(each.amount_nanos),
            }
            for each in statement.bookings
        ],
        "days": [
            {
                "day": f"{each.day:%Y-%m-%d}",
                "requests": f"{each.requests:,}",
                "top_ups": dollars(each.top_up_nanos),
                "charges": dollars(each.charge_nanos),
                "refunds": dollars(each.refund_nanos + each.correction_nanos),
                "closing": dollars(each.closing_nanos if statement.key_id is None else -each.closing_nanos),
            }
            for each in statement.days
        ],
    }
