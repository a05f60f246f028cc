"""A usage report as CSV (RFC 4180) that no spreadsheet takes for formulas."""

import csv
import io
from datetime import datetime

from msgspec import UNSET

from gateway.reports.table import COLUMNS, COST_MEASURES, MEASURES, UsageRow, UsageTable

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(value: object) -> str:
    """Write one cell. A text that a spreadsheet would run begins with a quote; numbers stay numbers."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def csv_of(table: UsageTable) -> str:
    """Write the rows of a report under their column names, without the total."""
    columns = [column for dimension in table.group_by for column in COLUMNS[dimension]]
    measures = [*MEASURES, *(COST_MEASURES if table.total.cost_nanos is not UNSET else ())]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([*columns, *measures])
    writer.writerows(_cells(row, [*columns, *measures]) for row in table.rows)
    return text.getvalue()


def _cells(row: UsageRow, columns: list[str]) -> list[str]:
    return [safe_cell(getattr(row, column)) for column in columns]
