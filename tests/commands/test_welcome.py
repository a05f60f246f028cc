"""What `faregate up` says while models load."""

from typing import Any

from gateway.commands.welcome import FEW, news_of


def row(name: str, state: str, reason: str = "") -> dict[str, Any]:
    return {"id": name, "state": state, "reason": reason}


def test_few_models_are_named_and_many_are_counted() -> None:
    few = [row(f"m{n}", "ready") for n in range(FEW)]
    assert news_of(few) == ["m0 is ready", "m1 is ready", "m2 is ready", "m3 is ready"]
    assert news_of([*few, row("m4", "ready")]) == ["5 models are ready: m0, m1, m2, m3, ..."]
    assert news_of([row("m", "on_demand")]) == ["m is loaded when it is called"]


def test_each_failure_is_told_with_its_reason_and_missing_keys_once() -> None:
    rows = [row("a", "failed", "no memory"), row("b", "unset"), row("c", "unset"), row("d", "loading")]
    told = news_of(rows)
    assert told[0] == "a cannot be used: no memory"
    assert told[1].startswith("2 models of other providers wait for a key")
    assert len(told) == 2
