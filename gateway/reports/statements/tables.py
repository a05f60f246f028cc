"""A statement as CSV: one table, whose first column says what a row is."""

import csv
import io

from gateway.money import usd_text
from gateway.reports.csv_text import safe_cell
from gateway.reports.statements.records import Statement

COLUMNS = ("row", "at", "name", "price_version", "requests", "quantity", "price_usd", "amount_usd", "note")


def statement_csv(statement: Statement) -> str:
    """Write a statement as CSV (RFC 4180): its head, its sums, charges with their lines, bookings, days."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\r\n")
    writer.writeheader()

    def row(kind: str, **cells: object) -> None:
        writer.writerow({"row": kind, **{name: _cell(name, value) for name, value in cells.items()}})

    state = "provisional" if statement.provisional else "final"
    row("statement", at=statement.month, name=statement.account, note=f"{state}; {statement.zone_name}")
    if statement.key_id is not None:
        row("key", at=statement.key_id, name=statement.key, note="its spending alone; balances are that with a minus")
    row("checksum", name=statement.checksum)
    for name in ("opening", "top_up", "charge", "refund", "correction", "closing"):
        row(name, amount_usd=usd_text(getattr(statement, f"{name}_nanos")))
    for charge in statement.charges:
        row(
            "model",
            name=charge.model,
            price_version=charge.price_version,
            requests=charge.requests,
            amount_usd=usd_text(charge.amount_nanos),
        )
        for line in charge.lines:
            row(
                "line",
                name=line.unit,
                price_version=charge.price_version,
                quantity=line.quantity,
                price_usd=line.price_usd,
                amount_usd=line.amount_usd,
                note=line.when,
            )
    for booking in statement.bookings:
        row(
            f"booked_{booking.kind}",
            at=booking.at,
            name=booking.request_id,
            amount_usd=usd_text(booking.amount_nanos),
            note=booking.reason,
        )
    for day in statement.days:
        row("day", at=day.day.isoformat(), requests=day.requests, amount_usd=usd_text(day.charge_nanos))
    return text.getvalue()


def _cell(name: str, value: object) -> str:
    """Write a cell. Amounts are numbers, and stay numbers with their sign."""
    return str(value) if name.endswith("_usd") else safe_cell(value)
