"""`GET /v1/models`: filtered, sorted, one by any of its names, and bad queries refused."""

import time
from collections.abc import Iterator
from decimal import Decimal

import httpx
import openai
import pytest

from tests.flow.conftest import READY
from tests.system import System


@pytest.fixture
def client(routing: System) -> Iterator[httpx.Client]:
    """Answer a client once all workers are heard of: one that was silent for a moment is passed over in choices."""
    routing.wait_ready(*READY)
    with routing.client() as made:
        yield made


def names(client: httpx.Client, **query: str) -> list[str]:
    answer = client.get("/v1/models", params=query)
    assert answer.status_code == 200, answer.text
    return [row["id"] for row in answer.json()["data"]]


def test_all_models_are_listed_by_name(client: httpx.Client) -> None:
    listed = names(client)
    assert listed == sorted(listed)
    assert {"dear-picture", "unpriced-picture", "two-ways"} <= set(listed)


def test_a_task_and_a_highest_price_leave_what_fits_exactly(client: httpx.Client) -> None:
    pictures = {"dear-picture", "fair-picture", "small-picture", "gone-picture", "unpriced-picture"}
    assert set(names(client, task="text-to-image")) == pictures
    assert names(client, task="image-edit") == ["dear-picture"]
    assert set(names(client, task="text-to-image", max_price="0.02")) == pictures - {"dear-picture", "unpriced-picture"}
    assert "fair-picture" not in names(client, task="text-to-image", max_price="0.019999999999")


def test_a_role_is_found_whatever_the_case(client: httpx.Client) -> None:
    assert names(client, role="Designer") == ["dear-picture"]
    assert names(client, role="nobody") == []


def test_prices_sort_exactly_and_models_without_one_come_last(client: httpx.Client) -> None:
    assert names(client, task="text-to-image", sort="price") == [
        *("gone-picture", "small-picture", "fair-picture", "dear-picture", "unpriced-picture")
    ]


def await_speeds(client: httpx.Client, *models: str) -> dict[str, float]:
    """Wait until models have a speed; answers how long each usually takes."""
    end = time.monotonic() + 60
    while True:
        rows = {row["id"]: row for row in client.get("/v1/models").json()["data"]}
        if all(rows[model]["speed"] for model in models):
            return {model: rows[model]["speed"]["p50_s"] for model in models}
        assert time.monotonic() < end
        time.sleep(0.2)


def test_speeds_sort_by_what_was_seen_of_late(client: httpx.Client) -> None:
    """What a machine that stands still for a moment does to one call, is nothing among some."""
    for _ in range(10):
        for model in ("one-way", "slow-chat"):
            body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
            assert client.post("/v1/chat/completions", json=body).status_code == 200
        speeds = await_speeds(client, "one-way", "slow-chat")
        if speeds["slow-chat"] == pytest.approx(1.0, rel=0.5) and speeds["one-way"] < 0.5:
            break
    assert speeds["slow-chat"] == pytest.approx(1.0, rel=0.5)
    asked = {"model": "auto", "messages": [{"role": "user", "content": "hello"}]}
    only = ["one-way", "slow-chat"]
    for sort, taken in (("price", "slow-chat"), ("latency", "one-way"), ("throughput", "one-way")):
        answer = client.post(
            "/v1/chat/completions", json=asked | {"max_tokens": 20, "provider": {"sort": sort, "only": only}}
        )
        assert answer.json()["model"] == taken, (sort, answer.text)
    for sort in ("latency", "throughput"):
        listed = names(client, task="chat", sort=sort)
        assert listed.index("one-way") < listed.index("slow-chat")


def test_a_model_is_shown_by_its_name_and_by_an_alias_with_a_slash(routing: System, client: httpx.Client) -> None:
    shown = client.get("/v1/models/studio/dear").json()
    assert (shown["id"], shown["aliases"]) == ("dear-picture", ["studio/dear"])
    assert Decimal(shown["pricing"]["image"]) == Decimal("0.04")
    assert shown["typical_usd"] == "0.04"
    sdk = openai.OpenAI(base_url=f"{routing.base_url}/v1", api_key=routing.api_key)
    assert sdk.models.retrieve("studio/dear").id == "dear-picture"
    assert client.get("/v1/models/no/such").status_code == 404


def test_what_is_not_available_says_why(client: httpx.Client) -> None:
    rows = {row["id"]: row for row in client.get("/v1/models").json()["data"]}
    assert rows["small-picture"]["unavailable_reason"] is None
    assert "No worker" in rows["gone-picture"]["unavailable_reason"]
    assert "no price" in rows["unpriced-picture"]["unavailable_reason"]
    assert [route["state"] for route in rows["two-ways"]["routes"]] == ["no_worker", "ready"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"task": "alchemy"}, "task"),
        ({"sort": "beauty"}, "sort"),
        ({"max_price": "-1"}, "max_price"),
        ({"max_price": "NaN"}, "max_price"),
        ({"max_price": "much"}, "max_price"),
        ({"max_price": "0.0000000000001"}, "max_price"),
    ],
)
def test_bad_queries_are_refused_by_name(client: httpx.Client, query: dict[str, str], param: str) -> None:
    refused = client.get("/v1/models", params=query)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
