"""The page about the admin API names every route, and no other."""

import re
from pathlib import Path
from typing import cast

from litestar import Litestar
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.admin.api.router import admin_router
from gateway.ledger.accounts import Accounts
from gateway.ledger.keys import Keys
from gateway.queues.revisions import MemoryRevisions
from gateway.reports.query import ADMIN_PARAMETERS
from gateway.reports.usage import UsageReport
from gateway.webhooks.deliveries import Deliveries

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "admin.md").read_text()


def test_every_admin_route_is_documented_and_no_other() -> None:
    engine = create_async_engine("postgresql+asyncpg://nobody@127.0.0.1:1/nowhere")
    router = admin_router(
        {"owner": "x" * 20},
        accounts=Accounts(engine),
        keys=Keys(engine),
        usage_report=UsageReport(engine),
        engine=engine,
        deliveries=Deliveries(engine),
        revisions=MemoryRevisions(),
    )
    paths = cast(dict[str, object], Litestar([router]).openapi_schema.to_schema()["paths"])
    routes = {
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method in cast(dict[str, object], methods)
        if method in {"get", "post", "put", "patch", "delete"}
    }
    assert set(re.findall(r"^\| `([A-Z]+ /admin/api/[^`]*)`", PAGE, re.MULTILINE)) == routes


def test_every_parameter_of_the_usage_report_is_documented() -> None:
    table = PAGE.partition("## The usage report")[2].partition("The answer has")[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == set(ADMIN_PARAMETERS)
