"""Pages of the tests' own: what a page's author writes, with all the parts that pages are made of."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.cards import cards
from gateway.admin.site.charts import Chart, Line
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.db.reading import reading

TEMPLATE = Path(__file__).parent / "sample.html"
COLUMNS = ("Key", "Account", "Budget", "Spend", "Requests", "Last used", "State")
ROWS = [
    {"id": at, "name": name, "account": account, "part": part, "spend": spend, "requests": requests, "state": state}
    for at, (name, account, part, spend, requests, state) in enumerate(
        [
            ("production", "Acme Video", 912, 84_213_440_000, 120_412, "live"),
            ("batch-captions", "Acme Video", 640, 31_004_120_500, 48_210, "live"),
            ("<script>alert(1)</script>", "Initech", 120, 4_350_000, 220, "live"),
            ("staging", "Initech", 1000, 12_000_000_000, 9_931, "spent"),
            ("old mobile app", "Hooli", 0, 0, 0, "revoked"),
        ]
    )
]


async def _spend(engine: AsyncEngine) -> int:
    async with reading(engine) as connection:
        return int((await connection.execute(text("select 131404000000"))).scalar_one())


async def _slow(engine: AsyncEngine) -> int:
    async with reading(engine, timeout_ms=50) as connection:
        return int((await connection.execute(text("select 1 from pg_sleep(5)"))).scalar_one())


@page("/admin/sample", needs="viewer")
async def show(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Show everything once."""
    if view.format == "csv":
        return view.csv("sample", ["name", "spend_nanos"], [[row["name"], row["spend"]] for row in ROWS])
    if view.format == "json":
        return view.json({"rows": ROWS})
    at = [datetime(2026, 11, 20, tzinfo=UTC) + timedelta(hours=hour) for hour in range(24)]
    wave = [[(hour * 7 * step) % 13 * 10**8 + step * 10**8 for hour in range(24)] for step in range(1, 6)]
    lines = [Line(label=f"model-{at}", values=values, colour=at, unit="usd") for at, values in enumerate(wave, start=1)]
    last = Line(label="Last week", values=[3 * 10**9 + hour * 10**8 for hour in range(24)], colour=0, dotted=True,
                unit="usd")  # fmt: skip
    chart = Chart(at=at, series=[*lines, last], zone_name=view.period.zone_name, unit="usd", shape="stack",
                  selects=True)  # fmt: skip
    found = await cards(view.page_id, spend=_spend(engine), slow=_slow(engine))
    return view.render("sample.html", rows=ROWS, columns=COLUMNS, chart=chart, **found)


@page("/admin/sample/{row_id:int}/stop", needs="billing", data=False)
async def ask_stop(view: NamedDependency[View], row_id: FromPath[int]) -> Response[Any]:
    """Ask before it is done."""
    return _ask(view, row_id)


@action("/admin/sample/{row_id:int}/stop", needs="billing")
async def stop(view: NamedDependency[View], row_id: FromPath[int]) -> Response[Any]:
    """Do it, if the name was typed."""
    form = await view.form()
    if form.get("confirm_name") != ROWS[row_id]["name"]:
        errors = {"confirm_name": "This is not its name."}
        return _ask(view, row_id, status=422, values=form, errors=errors)
    return view.redirect("/admin/sample", toast=f"{ROWS[row_id]['name']} is stopped.", audit_id=7)


def _ask(view: View, row_id: int, **given: Any) -> Response[Any]:
    return view.confirm(
        title=f"Stop {ROWS[row_id]['name']}",
        act=f"/admin/sample/{row_id}/stop",
        button="Stop it",
        danger=True,
        type_name=ROWS[row_id]["name"],
        effects=["It was used 1,204 times today, last 3 s ago.", "Its calls are refused from now on."],
        back="/admin/sample",
        **given,
    )


@action("/admin/sample/secret", needs="owner")
async def secret(view: NamedDependency[View]) -> Response[Any]:
    """Do what only an owner may."""
    return view.redirect("/admin/sample", toast="Done.")


@page("/usage/sample", needs="key", data=False)
async def usage(view: NamedDependency[View]) -> Response[Any]:
    """Say whose session it is."""
    return view.json({"key": view.visitor.api_key_id, "account": view.visitor.account_id})


@page("/admin/broken", needs="viewer", data=False)
async def broken(view: NamedDependency[View]) -> Response[Any]:
    """Fail in a way that nobody thought of."""
    raise KeyError("a secret of the system")


SAMPLE_PAGES = [show, ask_stop, stop, secret, usage, broken]
