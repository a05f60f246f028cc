"""Jobs of stand-ins are done at once, so they are looked at sooner than those of providers."""

import pytest

from workers.engines.upstream import jobs


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at a job of this process's engine for the first time after a twentieth of a second."""
    monkeypatch.setattr(jobs, "FIRST_LOOK_S", 0.05)
