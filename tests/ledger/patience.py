"""A machine that stalls for some seconds: no session with Postgres gives up for that, and no day ends amid a test."""

import inspect
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from gateway.db import session
from gateway.db.reading import reading
from gateway.reports.asking import page_session
from gateway.reports.figures import Figures

LONG_S = 60
DAY_MARGIN = timedelta(seconds=60)


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """Let sessions wait a minute for a connection, a lock, an answer and a page's statement, in place of seconds."""
    settings = {**session.HOT_SETTINGS, "lock_timeout": f"{LONG_S}s"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "CONNECT_TIMEOUT_S", float(LONG_S))
        patch.setattr(session, "HOT_SETTINGS", settings)
        for limited, limit in (
            (session.HotSession.__init__, {"timeout_s": float(LONG_S)}),
            (inspect.unwrap(reading), {"timeout_ms": LONG_S * 1000}),
            (Figures.__init__, {"timeout_ms": LONG_S * 1000}),
        ):
            patch.setattr(limited, "__kwdefaults__", limited.__kwdefaults__ | limit)
        patch.setattr(inspect.unwrap(page_session), "__defaults__", (LONG_S * 1000,))
        yield


def amid_a_day() -> None:
    """Wait while the day is about to end: budgets, sums and statements begin anew at midnight."""
    while (datetime.now(UTC) + DAY_MARGIN).date() != datetime.now(UTC).date():
        time.sleep(1)
