"""Sums add up exactly, and say of themselves what follows from them."""

from gateway.contract.units import Units
from gateway.money import usd_text
from gateway.reports.scope import NOTHING, Sums, add_up


def test_totals_add_up_exactly() -> None:
    total = add_up(
        [
            Sums(requests=1, charge_nanos=4 * 10**18, units=Units(output_tokens=5), latency_counts=(1, 2)),
            NOTHING,
            Sums(requests=2, charge_nanos=1, cost_nanos=3, latency_counts=(0, 5)),
        ]
    )
    assert (total.requests, total.charge_nanos, total.units.output_tokens) == (3, 4 * 10**18 + 1, 5)
    assert total.latency_counts == (1, 7)
    assert total.margin_nanos == 4 * 10**18 - 2
    assert usd_text(total.charge_nanos) == "4000000000.000000001"


def test_of_nothing_everything_is_zero_and_no_latency_is_known() -> None:
    assert add_up([]).requests == 0
    assert NOTHING.p95_us is None
