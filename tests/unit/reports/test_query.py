"""What a usage report may be asked, by a key about itself and by an operator about all."""

from datetime import UTC, datetime

import pytest

from gateway.contract.states import OUTCOMES
from gateway.contract.tasks import TASKS
from gateway.errors import InvalidRequest
from gateway.reports.query import read_admin_query, read_format, read_own_query

NOW = datetime(2026, 11, 21, 10, 25, tzinfo=UTC)


def test_groups_come_in_one_order_and_once() -> None:
    query = read_admin_query({"group_by": "model, day,model"}, NOW)
    assert query.group_by == ("day", "model")


def test_filters_are_read_as_what_the_rollups_store() -> None:
    query = read_admin_query({"account": "3", "key": "4", "outcome": "failed", "task": "chat", "model": "x"}, NOW)
    assert (query.scope.account_id, query.scope.key_id, query.scope.model) == (3, 4, "x")
    assert (query.scope.outcome, query.scope.task) == (OUTCOMES.index("failed"), TASKS.index("chat"))


def test_a_key_asks_only_about_itself() -> None:
    assert read_own_query({"model": "x"}, NOW, key_id=7).scope.key_id == 7
    for param, given in (("key", {"key": "8"}), ("account", {"account": "1"}), ("group_by", {"group_by": "account"})):
        with pytest.raises(InvalidRequest) as refused:
            read_own_query(given, NOW, key_id=7)
        assert refused.value.param == param


@pytest.mark.parametrize(
    ("param", "text"),
    [
        ("group_by", "colour"),
        ("group_by", "model,,day"),
        ("outcome", "fine"),
        ("task", "painting"),
        ("account", "0"),
        ("account", "-1"),
        ("account", "99999999999999999999"),
        ("key", "1; drop table usage"),
        ("key", "٣"),
        ("colour", "red"),
    ],
)
def test_bad_values_and_unknown_names_are_refused_by_name(param: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_admin_query({param: text}, NOW)
    assert refused.value.param == param


def test_format_is_the_parameter_and_else_what_is_accepted() -> None:
    assert read_format({}, "") == "json"
    assert read_format({}, "text/csv;q=0.9, application/json") == "csv"
    assert read_format({"format": "json"}, "text/csv") == "json"
    with pytest.raises(InvalidRequest):
        read_format({"format": "xml"}, "")
