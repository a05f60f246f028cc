"""What the code can say is documented, and nothing else is."""

import re
from pathlib import Path

from gateway.contract.pools import WorkerStatus
from gateway.contract.states import REASONS
from gateway.metrics import Metrics
from gateway.queues.port import Depth
from gateway.settler_metrics import SettlerMetrics

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def _codes() -> set[str]:
    sources = (path.read_text() for path in (ROOT / "gateway").rglob("*.py"))
    said = re.compile(r'\b(?:code|default_code|default_code: ClassVar\[str\]) ?= ?"([a-z_]+)"')
    return {code for source in sources for code in said.findall(source)}


def _documented(page: str) -> set[str]:
    return set(re.findall(r"^\| `([a-z_]+)`", (REFERENCE / page).read_text(), re.MULTILINE))


def test_every_error_code_is_documented_and_no_other() -> None:
    assert _documented("errors.md") == _codes() | (
        set(REASONS) - {"done", "client_gone", "cancelled_by_caller", "deadline"}
    )


def test_every_metric_is_documented_and_no_other() -> None:
    metrics = Metrics()
    metrics.answered("m", 1, 1)
    metrics.refused("x")
    metrics.pool("p", Depth(1, 2, 3), list[WorkerStatus]())
    names: set[str] = set()
    settler = SettlerMetrics()
    settler.swept("ended", 1)
    settler.webhook("failed", 0.1)
    for registry in (metrics.registry, settler.registry):
        names |= {family.name + ("_total" if family.type == "counter" else "") for family in registry.collect()}
    assert _documented("metrics.md") == names


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        (str(page.relative_to(ROOT)), target)
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []
