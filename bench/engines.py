"""`python -m bench.engines [ENGINE]...`: what a worker adds to its bare engine; exit 1 where it is above the bar."""

import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from os import cpu_count
from typing import cast

import msgspec

from bench.__main__ import RESULTS, commit, say
from bench.bars import Check
from bench.build import build_client
from bench.comparison import Comparison, render
from bench.servers import ROOT

ENGINES = ("vllm", "diffusers")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run leaves behind."""

    at: datetime
    commit: str
    machine: str
    seconds: float
    checks: list[Check]
    notes: list[str]
    comparisons: list[Comparison]


def measure(engine: str) -> tuple[list[Comparison], str]:
    """Measure one engine; where its packages are missing, answer nothing and a note that says so."""
    say(engine)
    try:
        own = import_module(f"bench.engines_{engine}")
        return cast(Callable[[], list[Comparison]], own.measure)(), ""
    except ModuleNotFoundError as error:
        return [], f"{engine} was left out: {error.name} is not installed"


def main() -> int:
    """Measure, print and write; 0 where the bar is met by all that was measured."""
    chosen = sys.argv[1:] or ENGINES
    unknown = set(chosen) - set(ENGINES)
    if unknown:
        sys.exit(f"python -m bench.engines [{'|'.join(ENGINES)}]...: there is no {', '.join(sorted(unknown))}")
    began, at = time.monotonic(), datetime.now(UTC)
    build_client()
    measured = [measure(engine) for engine in chosen]
    comparisons = [comparison for found, _ in measured for comparison in found]
    checks = [check for comparison in comparisons if (check := comparison.check()) is not None]
    report = Report(
        at=at,
        commit=commit(),
        machine=f"{cpu_count()} processors, {platform.platform()}, Python {platform.python_version()}",
        seconds=time.monotonic() - began,
        checks=checks,
        notes=[note for _, note in measured if note],
        comparisons=comparisons,
    )
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"engines-{at:%Y%m%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    print(render(comparisons))
    print("\n".join(report.notes))
    print(f"{report.machine}; {report.seconds:.0f} s; written to {path.relative_to(ROOT)}")
    return 0 if checks and all(check.passed for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
