"""Ranges of reports are whole hours of UTC, and what cannot be read is refused by the parameter's name."""

from datetime import UTC, datetime

import pytest

from gateway.errors import InvalidRequest
from gateway.reports.ranges import read_range

NOW = datetime(2026, 11, 21, 10, 25, tzinfo=UTC)


def test_default_is_thirty_days_up_to_the_present_hour() -> None:
    found = read_range(None, None, NOW)
    assert found.to_at == datetime(2026, 11, 21, 11, tzinfo=UTC)
    assert found.from_at == datetime(2026, 10, 22, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-11-20", datetime(2026, 11, 20, 0, tzinfo=UTC)),
        ("2026-11-20T08:59:59", datetime(2026, 11, 20, 8, tzinfo=UTC)),
        ("2026-11-20T08:30:00Z", datetime(2026, 11, 20, 8, tzinfo=UTC)),
        ("2026-11-20T08:30:00+02:00", datetime(2026, 11, 20, 6, tzinfo=UTC)),
    ],
)
def test_from_is_widened_down_to_its_hour_in_utc(text: str, hour: datetime) -> None:
    assert read_range(text, None, NOW).from_at == hour


def test_to_is_widened_up_to_its_hour_and_excluded_when_whole() -> None:
    assert read_range(None, "2026-11-20T08:00:01Z", NOW).to_at == datetime(2026, 11, 20, 9, tzinfo=UTC)
    assert read_range(None, "2026-11-20T08:00:00Z", NOW).to_at == datetime(2026, 11, 20, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("from_text", "to_text", "param"),
    [
        ("yesterday", None, "from"),
        (None, "2026-13-01", "to"),
        ("2026-11-21", "2026-11-20", "from"),
        ("2026-11-20", "2026-11-20", "from"),
        ("2024-01-01", "2026-01-01", "from"),
        ("0001-01-01T00:00:00+14:00", None, "from"),
        (None, "9999-12-31T23:59:59-14:00", "to"),
    ],
)
def test_refuses_what_is_no_range_by_the_parameters_name(
    from_text: str | None, to_text: str | None, param: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_range(from_text, to_text, NOW)
    assert refused.value.param == param
