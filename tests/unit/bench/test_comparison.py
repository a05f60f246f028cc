"""A bare engine beside the same through a worker: each round is held beside its own, and the table says so."""

import pytest

from bench.comparison import Comparison, Side, render


def comparison(through: list[float], judged: str = "worker") -> Comparison:
    return Comparison(
        title="vLLM",
        unit="tokens/s",
        bare=Side(name="bare", rates=[100.0, 50.0, 200.0], cpu_ms=[0.1, 0.2, 0.3]),
        through=[Side(name="worker", rates=through)],
        judged=judged,
    )


@pytest.mark.parametrize(
    ("through", "added", "passed"),
    [
        ([98.0, 49.0, 196.0], 2.04, True),
        ([90.0, 45.0, 180.0], 11.1, False),
        ([110.0, 45.0, 200.0], 0.0, True),
    ],
)
def test_a_round_is_held_beside_the_bare_one_before_it(through: list[float], added: float, passed: bool) -> None:
    """The machine's speed drifts by a factor of two, so medians of all rounds would compare its moods."""
    found = comparison(through)
    assert found.added_percent(found.through[0]) == pytest.approx(added, abs=0.1)
    check = found.check()
    assert check is not None
    assert check.passed is passed


def test_what_nobody_judges_passes_no_judgement() -> None:
    assert comparison([1.0, 1.0, 1.0], judged="").check() is None


def test_the_table_has_a_line_for_each_side() -> None:
    head, bare, worker = render([comparison([90.0, 45.0, 180.0])]).splitlines()
    assert "asked" in head
    assert bare.split() == ["vLLM,", "tokens/s", "bare", "100", "0.200"]
    assert worker.split() == ["worker", "90", "+11.1%", "-", "<=", "3%", "added", "FAIL"]
