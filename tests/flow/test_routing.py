"""A request with several ways: fallback models, wishes about providers, `auto`, and prices that are too high."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gateway.routing.health import LEAST_SEEN
from tests.flow.conftest import READY
from tests.flow.test_requests import finished
from tests.media.samples import data_url, picture
from tests.system import System

SAID = [{"role": "user", "content": "hello"}]
PICTURE = {"prompt": "a fox"}


@pytest.fixture
def client(routing: System) -> Iterator[httpx.Client]:
    """Answer a client once all workers are heard of: one that was silent for a moment is passed over in choices."""
    routing.wait_ready(*READY)
    with routing.client() as made:
        yield made


def chat(client: httpx.Client, model: str, **more: Any) -> httpx.Response:
    return client.post("/v1/chat/completions", json={"model": model, "messages": SAID} | more)


def draw(client: httpx.Client, model: str = "auto", given: dict[str, Any] = PICTURE, **more: Any) -> httpx.Response:
    body = {"model": model, "input": given, "task": "text-to-image"} | more
    return client.post("/v1/requests", json=body, headers={"prefer": "wait=60"})


def test_a_pool_without_workers_is_passed_over_where_another_way_exists(client: httpx.Client) -> None:
    answer = chat(client, "two-ways")
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-faregate-model"] == "two-ways"


def test_a_wish_for_the_only_pool_that_nobody_serves_waits_there(client: httpx.Client) -> None:
    asked = {"model": "two-ways", "input": {"messages": SAID}, "only": ["gone"]}
    accepted = client.post("/v1/requests", json=asked).json()
    assert accepted["status"] == "queued"
    assert client.post(accepted["urls"]["cancel"]).status_code == 200
    assert finished(client, accepted["id"])["status"] == "cancelled"


def test_a_model_that_cannot_take_the_input_is_passed_over_and_the_price_is_that_of_the_one_that_answered(
    client: httpx.Client,
) -> None:
    answer = draw(client, "small-picture", PICTURE | {"n": 2}, models=["fair-picture"])
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert shown["model"] == answer.headers["x-faregate-model"] == "fair-picture"
    assert shown["charge_nanos"] == 40_000_000
    rows = {row["id"]: row for row in client.get("/v1/models").json()["data"]}
    assert shown["price_version"] == rows["fair-picture"]["price_version"]


def test_the_hold_is_the_highest_ceiling_of_all_ways(client: httpx.Client) -> None:
    answer = draw(client, "small-picture", models=["dear-picture", "fair-picture"]).json()
    assert answer["model"] == "small-picture"
    assert (answer["hold_nanos"], answer["charge_nanos"]) == (40_000_000, 5_000_000)
    alone = draw(client, "small-picture", models=["dear-picture"], provider={"allow_fallbacks": False}).json()
    assert alone["hold_nanos"] == 5_000_000


def test_the_first_models_error_is_the_callers_where_none_is_left(client: httpx.Client) -> None:
    refused = draw(client, "small-picture", PICTURE | {"n": 9}, models=["fair-picture", "unpriced-picture"])
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "n"
    assert "at most 1 " in refused.json()["error"]["message"]


def test_openai_bodies_take_fallbacks_too(client: httpx.Client) -> None:
    answer = chat(client, "one-way", max_tokens=6000, models=["two-ways"])
    assert answer.status_code == 200, answer.text
    assert answer.json()["model"] == "two-ways"
    assert answer.json()["usage"]["charge_nanos"] == 1_000_000
    picture = client.post(
        "/v1/images/generations",
        json={"model": "unpriced-picture", "models": ["small-picture"], "prompt": "a fox"},
    )
    assert picture.status_code == 200, picture.text
    assert picture.headers["x-faregate-model"] == "small-picture"


def test_auto_runs_the_cheapest_that_takes_the_input_and_says_why(client: httpx.Client) -> None:
    answer = draw(client)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert (shown["model"], shown["charge_nanos"]) == ("small-picture", 5_000_000)
    choice = shown["choice"]
    assert (choice["model"], choice["sort"], choice["candidates"]) == ("small-picture", "price", 3)
    assert choice["fallbacks"] == ["fair-picture", "dear-picture"]
    assert choice["ceiling_usd"] == "0.005"
    two = draw(client, given=PICTURE | {"n": 2}).json()
    assert (two["model"], two["charge_nanos"]) == ("fair-picture", 40_000_000)
    assert json.loads(answer.headers["x-faregate-choice"]) == choice
    again = client.get(shown["urls"]["get"]).json()
    assert again["choice"] == choice


def test_auto_obeys_only_and_ignore_by_model_and_by_pool(client: httpx.Client) -> None:
    assert draw(client, ignore=["small-picture"]).json()["model"] == "fair-picture"
    assert draw(client, ignore=["there", "small-picture"]).json()["model"] == "dear-picture"
    assert draw(client, only=["there"]).json()["model"] == "fair-picture"
    assert draw(client, only=["studio/dear"]).json()["model"] == "dear-picture"


def test_auto_in_an_openai_body_knows_its_task(client: httpx.Client) -> None:
    answer = client.post(
        "/v1/chat/completions", json={"model": "auto", "messages": SAID, "provider": {"sort": "price"}}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["model"] in ("two-ways", "slow-chat")
    picture = client.post("/v1/images/generations", json={"model": "auto", "prompt": "a fox"})
    assert picture.headers["x-faregate-model"] == "small-picture"


def test_a_stream_names_the_model_that_answered(client: httpx.Client) -> None:
    body = {"model": "auto", "messages": SAID, "stream": True, "provider": {"only": ["one-way"]}}
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.status_code == 200
        assert answer.headers["x-faregate-model"] == "one-way"
        assert json.loads(answer.headers["x-faregate-choice"])["fallbacks"] == []
        chunks = [line for line in answer.iter_lines() if line.startswith("data: {")]
    assert json.loads(chunks[-1].removeprefix("data: "))["model"] == "one-way"


def test_a_price_that_is_too_high_names_the_cheapest_model_that_fits(client: httpx.Client) -> None:
    refused = draw(client, "dear-picture", PICTURE | {"n": 2}, max_price="0.05")
    assert refused.status_code == 402
    error = refused.json()["error"]
    assert (error["code"], error["param"]) == ("price_too_high", "max_price")
    assert "fair-picture" in error["message"]
    assert "$0.04" in error["message"]
    none = draw(client, "dear-picture", PICTURE | {"n": 2}, max_price="0.01")
    assert none.status_code == 402
    assert "No model does text-to-image" in none.json()["error"]["message"]


def test_unit_prices_of_a_provider_leave_models_out(client: httpx.Client) -> None:
    answer = draw(client, "dear-picture", models=["fair-picture"], provider={"max_price": {"image": "0.03"}})
    assert answer.json()["model"] == "fair-picture"
    refused = draw(client, "dear-picture", provider={"max_price": {"image": 0.03}})
    assert refused.status_code == 402
    assert draw(client, provider={"max_price": 0.03}).json()["model"] == "small-picture"


@pytest.mark.parametrize(
    ("more", "status", "code", "param"),
    [
        ({"models": ["no-such-model"]}, 404, "model_not_found", "models[0]"),
        ({"models": ["auto"]}, 404, "model_not_found", "models[0]"),
        ({"models": ["fair-picture"] * 9}, 400, "invalid_request", "models"),
        ({"models": "fair-picture"}, 400, "invalid_request", "models"),
        ({"models": [""]}, 400, "invalid_request", "models[0]"),
        ({"provider": {"data_collection": "deny"}}, 400, "unknown_field", "provider.data_collection"),
        ({"provider": {"sort": "beauty"}}, 400, "invalid_request", "provider.sort"),
        ({"provider": {"order": ["nobody"]}}, 400, "unknown_provider", "order"),
        ({"only": ["nobody"]}, 400, "unknown_provider", "only"),
        ({"ignore": ["http://169.254.169.254"]}, 400, "unknown_provider", "ignore"),
        ({"only": ["there"], "ignore": ["there"]}, 400, "no_way_left", "provider"),
        ({"ignore": ["dear-picture"]}, 400, "no_way_left", "provider"),
        ({"max_price": -1}, 400, "invalid_request", "max_price"),
        ({"max_price": "-1"}, 400, "invalid_request", "max_price"),
        ({"max_price": "NaN"}, 400, "invalid_request", "max_price"),
        ({"max_price": "1e99"}, 400, "invalid_request", "max_price"),
        ({"provider": {"max_price": "much"}}, 400, "invalid_request", "provider.max_price"),
        ({"provider": {"max_price": {"image": "NaN"}}}, 400, "invalid_request", "provider.max_price.image"),
        ({"provider": {"max_price": {"pixel": 1}}}, 400, "unknown_field", "provider.max_price.pixel"),
        ({"task": "alchemy"}, 400, "invalid_request", "task"),
        ({"task": "music"}, 400, "task_not_supported", "task"),
        ({"models": ["fair-picture"], "quote": "quo_x"}, 400, "invalid_request", "quote"),
    ],
)
def test_bad_wishes_are_refused_by_name(
    client: httpx.Client, more: dict[str, Any], status: int, code: str, param: str
) -> None:
    refused = draw(client, "dear-picture", **more)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (status, code, param), error


def test_auto_needs_a_task_that_somebody_does_and_an_input_that_somebody_takes(client: httpx.Client) -> None:
    bare = client.post("/v1/requests", json={"model": "auto", "input": PICTURE})
    assert (bare.status_code, bare.json()["error"]["param"]) == (400, "task")
    nobody = draw(client, task="music")
    assert (nobody.status_code, nobody.json()["error"]["code"]) == (404, "no_model_fits")
    unfit = draw(client, given=PICTURE | {"n": 10})
    assert (unfit.status_code, unfit.json()["error"]["code"]) == (400, "no_model_fits")
    dear = draw(client, max_price="0.0001")
    assert (dear.status_code, dear.json()["error"]["code"]) == (402, "price_too_high")


def test_a_body_that_is_no_number_where_a_price_stands_is_refused(client: httpx.Client) -> None:
    body = json.dumps({"model": "auto", "task": "text-to-image", "input": PICTURE, "max_price": float("nan")})
    refused = client.post("/v1/requests", content=body, headers={"content-type": "application/json"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_json")


def test_refused_calls_leave_no_hold(routing: System) -> None:
    account, key = routing.account("chooser", "1")
    with routing.client(key) as client:
        assert draw(client, "dear-picture", max_price="0.001").status_code == 402
        assert draw(client, task="music").status_code == 404
        assert draw(client, "dear-picture", models=["nobody"]).status_code == 404
    balance = routing.balance(account)
    assert balance["held_nanos"] == 0
    assert balance["available_nanos"] == 1_000_000_000


def test_a_pool_that_fails_comes_last_for_a_while_and_no_caller_notices(client: httpx.Client) -> None:
    failing = {"messages": [{"role": "user", "content": "fake:fail=1"}]}
    first: list[str] = []
    for _ in range(2 * LEAST_SEEN):
        asked = {"model": "either", "input": failing}
        answer = client.post("/v1/requests", json=asked, headers={"prefer": "wait=60"}).json()
        assert answer["status"] == "succeeded", answer
        assert answer["charge_nanos"] == 3_000_000
        attempts = client.get(answer["urls"]["get"]).json()["attempts"]
        assert [each["outcome"] for each in attempts] == ["failed", "succeeded"]
        first.append(attempts[0]["pool"])
    assert first[:LEAST_SEEN] == ["here"] * LEAST_SEEN
    assert "there" in first[LEAST_SEEN:][:2], "at once, or after the trial that is due where a pause was long"


def test_wishes_lead_a_request_by_the_pools_that_are_named(client: httpx.Client) -> None:
    def failed_in(**wish: Any) -> str:
        asked = {"model": "seldom-failing", "input": {"messages": [{"role": "user", "content": "fake:fail=1"}]}} | wish
        answer = client.post("/v1/requests", json=asked, headers={"prefer": "wait=60"}).json()
        shown = client.get(answer["urls"]["get"]).json() if "urls" in answer else answer
        pool: str = shown["attempts"][0]["pool"]
        return pool

    assert failed_in(provider={"order": ["there"]}) == "there"
    assert failed_in() == "here"


def test_without_fallbacks_the_failure_of_the_one_way_is_the_callers(client: httpx.Client) -> None:
    asked = {"model": "seldom-failing", "messages": [{"role": "user", "content": "fake:fail=1"}]}
    answer = client.post("/v1/chat/completions", json=asked | {"provider": {"allow_fallbacks": False}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "engine_error")


def test_an_upstream_without_a_key_is_passed_over_or_named(client: httpx.Client) -> None:
    assert chat(client, "half-hosted").status_code == 200
    refused = chat(client, "hosted")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (503, "upstream_not_configured"), error
    assert "FAREGATE_UPSTREAM_NOKEY_KEY" in error["message"]
    assert chat(client, "hosted", models=["one-way"]).json()["model"] == "one-way"
    only = chat(client, "half-hosted", provider={"only": ["nokey"]})
    assert only.json()["error"]["code"] == "upstream_not_configured"
    row = client.get("/v1/models/hosted").json()
    assert (row["available"], row["state"]) == (False, "unset")
    assert "FAREGATE_UPSTREAM_NOKEY_KEY" in row["unavailable_reason"]
    auto = client.post("/v1/chat/completions", json={"model": "auto", "messages": SAID})
    assert auto.json()["model"] != "hosted"  # the cheapest, and it cannot be run


def test_media_are_taken_in_once_for_all_models(client: httpx.Client) -> None:
    given = {"image": data_url(picture(), "image/png"), "prompt": "in ink"}
    asked = {"model": "auto", "task": "image-restyle", "input": given}
    answer = client.post("/v1/requests", json=asked, headers={"prefer": "wait=60"}).json()
    assert (answer["model"], answer["choice"]["fallbacks"]) == ("fair-picture", ["dear-picture"])
    assert answer["charge_nanos"] == 20_000_000
    dear = {"model": "dear-picture", "task": "image-restyle", "input": given, "max_price": "0.03"}
    refused = client.post("/v1/requests", json=dear).json()["error"]
    assert refused["code"] == "price_too_high"
    assert "fair-picture" in refused["message"]
