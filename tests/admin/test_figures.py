"""Figures and periods as pages write and read them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.admin.site.figures import ago, change, change_tone, duration, ms, script_json, share, short, usd, usd_exact
from gateway.admin.site.period import read_period
from gateway.errors import InvalidRequest
from gateway.reports.ranges import Range

NOW = datetime(2026, 11, 21, 10, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("nanos", "shown", "exact"),
    [
        (0, "$0.00", "$0.00"),
        (1_240_180_000_000, "$1,240.18", "$1,240.18"),
        (-5_000_000_000, "-$5.00", "-$5.00"),
        (4_350_000, "$0.00435", "$0.00435"),
        (1, "$0.000000001", "$0.000000001"),
        (-1_234_567, "-$0.00123", "-$0.001234567"),
        (1_005_000_000, "$1.00", "$1.005"),
        (1_015_000_000, "$1.02", "$1.015"),
        (9_999_999, "$0.01", "$0.009999999"),
        (2**63 - 1, "$9,223,372,036.85", "$9,223,372,036.854775807"),
        (None, "\u2013", "\u2013"),
    ],
)
def test_money_is_rounded_once_for_reading_and_never_where_it_must_be_exact(
    nanos: int | None, shown: str, exact: str
) -> None:
    assert (usd(nanos), usd_exact(nanos)) == (shown, exact)


@settings(deadline=None)
@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_exact_amounts_read_back(nanos: int) -> None:
    sign, digits = ("-", usd_exact(nanos)[2:]) if nanos < 0 else ("", usd_exact(nanos)[1:])
    whole, _, rest = digits.replace(",", "").partition(".")
    assert int(f"{sign}{whole}{rest.ljust(9, '0')}") == nanos


def test_other_figures_are_short_and_say_their_unit() -> None:
    assert [short(each) for each in (None, 0, 9_999, 48_210, 3_100_000)] == ["\u2013", "0", "9,999", "48.2k", "3.1M"]
    assert [ms(each) for each in (0.4, 12, 1240, 185_000)] == ["0.4 ms", "12 ms", "1.24 s", "3 min 5 s"]
    assert [duration(each) for each in (0, 59.6, 3600, 180_000)] == ["0 s", "1 min", "1 h", "2 d 2 h"]
    assert [share(1, 3), share(1, 0), share(None, 2)] == ["33.3%", "\u2013", "\u2013"]
    assert [ago(NOW - timedelta(seconds=3), NOW), ago(NOW + timedelta(days=2), NOW), ago(None)] == [
        "3 s ago",
        "in 2 d",
        "never",
    ]


def test_a_change_says_whether_it_is_good_news() -> None:
    assert [change(108, 100), change(200, 100), change(5, 0), change(0, 0)] == ["+8.0%", "+100%", "new", "\u2013"]
    assert [change_tone("+8.0%"), change_tone("+8.0%", "down"), change_tone("new"), change_tone("-3%", "neither")] == [
        "good",
        "bad",
        "off",
        "off",
    ]


def test_data_in_a_page_cannot_end_its_element() -> None:
    assert "<" not in script_json({"name": "</script><script>alert(1)</script>&\u2028"})


def test_the_default_is_the_last_24_hours_against_the_same_hours_last_week() -> None:
    period = read_period({}, NOW)
    assert period.range == Range(datetime(2026, 11, 20, 11, tzinfo=UTC), datetime(2026, 11, 21, 11, tzinfo=UTC))
    assert period.before.from_at == period.range.from_at - timedelta(days=7)
    assert (period.zone_name, period.preset, period.is_daily) == ("UTC", "24h", False)
    assert period.before_title == "the same hours last week"


@pytest.mark.parametrize("preset", ["24h", "7d", "30d", "90d", "month"])
@settings(deadline=None)
@given(hours=st.integers(0, 5 * 366 * 24))
def test_what_is_compared_is_as_long_earlier_and_on_the_same_days_of_the_week(preset: str, hours: int) -> None:
    period = read_period({"range": preset}, NOW + timedelta(hours=hours))
    assert period.range.to_at - period.range.from_at == period.before.to_at - period.before.from_at
    assert period.before.to_at <= period.range.from_at
    assert (period.range.from_at - period.before.from_at) % timedelta(weeks=1) == timedelta()


def test_dates_are_days_of_the_zone_and_the_last_one_is_in_it() -> None:
    period = read_period({"from": "2026-03-28", "to": "2026-03-29", "tz": "Europe/Berlin"}, NOW)
    assert period.range == Range(datetime(2026, 3, 27, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))
    instant = read_period({"from": "2026-11-01T10:30:00Z", "to": "2026-11-01T12:00:00+01:00"}, NOW)
    assert instant.range == Range(datetime(2026, 11, 1, 10, tzinfo=UTC), datetime(2026, 11, 1, 11, tzinfo=UTC))


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"range": "1y"}, "range"),
        ({"tz": "../../etc/passwd"}, "tz"),
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-11-21", "to": "2026-11-20"}, "from"),
        ({"from": "2020-01-01"}, "from"),
        ({"to": "9999-12-31"}, "to"),
        ({"from": "0001-01-01"}, "from"),
    ],
)
def test_a_period_that_is_none_is_refused_by_name(query: dict[str, str], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_period(query, NOW)
    assert refused.value.param == param
