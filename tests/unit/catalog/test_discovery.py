"""The row of a model in `GET /v1/models`."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from gateway.catalog.discovery import model_row
from gateway.catalog.model import Model, Parameter, Pick, Route
from gateway.catalog.typical import TYPICAL, typical_attos
from gateway.contract.pools import LoadState, ModelState, UpstreamState, WorkerStatus
from gateway.contract.tasks import TASKS
from gateway.money import ATTOS_PER_PICO, parse_price
from gateway.pricing.price import PriceComponent, PriceVersion

PRICE = PriceVersion(7, 1, (PriceComponent("input_token", parse_price("0.0000001")),), datetime(2026, 1, 1, tzinfo=UTC))
MODEL = Model(
    name="m",
    id=1,
    tasks=("chat", "completion"),
    description="A model.",
    price=PRICE,
    parameters={"n": Parameter(type="integer", maximum=4, priced=True)},
    routes=(Route(pool="gpu"),),
    picks=(Pick(role="Developer", use="A test", line="Quick"),),
    context_tokens=100,
)


def worker(state: LoadState, **fields: Any) -> WorkerStatus:
    plain: dict[str, Any] = {
        "worker": "w",
        "pool": "gpu",
        "engine": "vllm",
        "pid": 1,
        "version": "0",
        "models": {"m": ModelState(state=state, detail="no such folder" if state == "failed" else "")},
        "capacity": 1,
        "running": 0,
        "memory_bytes": 0,
    }
    return WorkerStatus(**(plain | fields))


def test_a_row_is_an_openai_row_and_says_what_the_model_does_costs_and_takes() -> None:
    row = model_row(MODEL, [worker("ready")])
    assert (row["id"], row["object"], row["owned_by"]) == ("m", "model", "faregate")
    assert row["created"] == 1767225600
    assert row["tasks"] == ["chat", "completion"]
    assert row["price"] == [{"unit": "input_token", "usd": "0.0000001", "text": "$0.10 per 1M input tokens"}]
    assert row["price_version"] == 7
    assert row["parameters"] == {"n": {"type": "integer", "maximum": 4, "priced": True}}
    assert row["routes"] == [{"pool": "gpu", "order": 0, "weight": 1, "state": "ready"}]
    assert row["pricing"] == {"prompt": "0.0000001", "completion": "0", "request": "0", "image": "0"}
    assert row["typical_usd"] == "0.0001"
    assert (row["unavailable_reason"], row["weights"], row["speed"]) == (None, None, None)
    assert row["picks"] == [{"role": "Developer", "use": "A test", "line": "Quick"}]
    assert row["context_tokens"] == 100
    assert msgspec.json.decode(msgspec.json.encode(row)) == row


@pytest.mark.parametrize(
    ("workers", "state", "reason"),
    [
        ([], "no_worker", "No worker serves it"),
        ([worker("ready")], "ready", ""),
        ([worker("loading")], "loading", "being loaded"),
        ([worker("loading"), worker("on_demand")], "on_demand", "when a request comes"),
        ([worker("failed")], "failed", "could not load it. no such folder"),
        ([worker("failed"), worker("loading"), worker("ready")], "ready", ""),
        ([worker("ready", draining=True)], "no_worker", "No worker serves it"),
        ([worker("ready", pool="other")], "no_worker", "No worker serves it"),
        ([worker("ready", models={})], "no_worker", "No worker serves it"),
    ],
)
def test_a_model_stands_as_the_best_of_its_workers(workers: list[WorkerStatus], state: str, reason: str) -> None:
    row = model_row(MODEL, workers)
    assert row["state"] == state
    assert row["available"] is (state in ("ready", "on_demand"))
    assert reason in row["reason"]


def test_a_model_without_a_price_is_not_for_sale_however_ready_its_workers() -> None:
    row = model_row(msgspec.structs.replace(MODEL, price=None), [worker("ready")])
    assert (row["state"], row["available"], row["price"], row["price_version"]) == ("not_for_sale", False, [], None)


HOSTED = msgspec.structs.replace(
    MODEL,
    routes=(Route(pool="up", upstream="gmi", model="x-1"), Route(pool="up", upstream="eleven-labs", model="x")),
)


@pytest.mark.parametrize(
    ("gmi", "other", "state", "reason"),
    [
        ("closed", "open", "ready", None),
        ("half_open", "unset", "ready", None),
        ("open", "unset", "tripped", "fail at the moment"),
        ("unset", "unset", "unset", "FAREGATE_UPSTREAM_GMI_KEY or FAREGATE_UPSTREAM_ELEVEN_LABS_KEY"),
    ],
)
def test_a_hosted_model_stands_as_the_best_of_its_upstreams(
    gmi: Any, other: Any, state: str, reason: str | None
) -> None:
    upstreams = {
        "gmi": UpstreamState(state=gmi, latency_ms=120, error_rate=0.25),
        "eleven-labs": UpstreamState(state=other),
    }
    row = model_row(HOSTED, [worker("ready", pool="up", upstreams=upstreams)])
    assert row["state"] == state
    assert row["available"] is (reason is None)
    assert (row["unavailable_reason"] is None) is (reason is None)
    assert reason is None or reason in str(row["unavailable_reason"])
    first = {"pool": "up", "order": 0, "weight": 1, "upstream": "gmi", "model": "x-1"}
    assert row["routes"][0] == first | {"breaker": gmi, "latency_ms": 120, "error_rate": 0.25}


def test_what_an_upstream_costs_and_is_sent_is_not_told() -> None:
    cost = (PriceComponent("request", 5),)
    route = Route(pool="up", upstream="gmi", model="x", fixed={"secret": 1}, fields={"a": "b"}, cost=cost)
    row = model_row(msgspec.structs.replace(MODEL, routes=(route,)), [])
    assert set(row["routes"][0]) == {
        *("pool", "order", "weight", "upstream", "model", "breaker", "latency_ms", "error_rate")
    }


def test_every_task_has_a_typical_request_that_each_unit_of_a_price_can_be_of() -> None:
    assert TYPICAL.keys() == set(TASKS)
    assert typical_attos(MODEL) == 1_000 * parse_price("0.0000001") * ATTOS_PER_PICO
    assert typical_attos(msgspec.structs.replace(MODEL, price=None)) is None
