"""CSV that a spreadsheet opens without running anything."""

import csv
import io
from datetime import UTC, date, datetime

import pytest

from gateway.reports.csv_text import csv_of, safe_cell
from gateway.reports.table import UsageRow, UsageTable


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_that_would_run_is_quoted(start: str) -> None:
    assert safe_cell(f"{start}cmd|' /C calc'!A1") == f"'{start}cmd|' /C calc'!A1"


def test_numbers_stay_numbers() -> None:
    assert safe_cell(-5) == "-5"
    assert safe_cell(10**18) == "1000000000000000000"


def test_a_table_is_read_back_by_a_csv_reader() -> None:
    rows = [
        UsageRow(
            day=date(2026, 11, 20),
            key_id=3,
            key_name='=1+1,"a"\nb',
            requests=2,
            charge_nanos=1,
            charge_usd="0.000000001",
        ),
        UsageRow(day=date(2026, 11, 21), key_id=4, key_name="plain", requests=1),
    ]
    at = datetime(2026, 11, 20, tzinfo=UTC)
    table = UsageTable(from_at=at, to_at=at, group_by=("day", "key"), rows=rows, total=UsageRow(requests=3))
    read = list(csv.reader(io.StringIO(csv_of(table), newline="")))
    assert read[0][:6] == ["day", "key_id", "key_name", "requests", "charge_nanos", "charge_usd"]
    assert read[1][:6] == ["2026-11-20", "3", '\'=1+1,"a"\nb', "2", "1", "0.000000001"]
    assert read[2][:4] == ["2026-11-21", "4", "plain", "1"]
    assert len(read) == 3
