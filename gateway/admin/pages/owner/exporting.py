"""Requests and usage as files."""

import asyncio
from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.response import Stream
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.owner.requests import read_own_filter
from gateway.admin.pages.requests.asked import read_asked
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.errors import NotFound
from gateway.reports.csv_text import csv_of
from gateway.reports.exports.columns import ADMIN_COLUMNS, OWN_COLUMNS, Column
from gateway.reports.exports.exports import MEDIA_TYPES, Exports, read_export_format
from gateway.reports.exports.table_parquet import parquet_of
from gateway.reports.query import ADMIN_PARAMETERS, read_admin_query
from gateway.reports.request_filter import RequestFilter
from gateway.reports.usage import UsageReport

_REPORT_GROUPS = "day,account,key,model,outcome"
_REPORT_PARAMETERS = tuple(name for name in ADMIN_PARAMETERS if name not in ("from", "to", "format"))


async def _own(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], exports: NamedDependency[Exports]
) -> Stream:
    """Send the requests of the session's key, under the list's filters."""
    return await _sent(exports, await read_own_filter(engine, view), OWN_COLUMNS, view.request.url.path)


async def _all(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], exports: NamedDependency[Exports]
) -> Stream:
    """Send an operator all requests under the list's filters."""
    asked = await read_asked(engine, view.query, view.period.range)
    if asked.problem:
        raise NotFound(asked.problem)
    return await _sent(exports, asked.wanted, ADMIN_COLUMNS, view.request.url.path)


async def _usage(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Send an operator the report of `GET /admin/api/usage` over the page's period."""
    given = {name: text for name, text in view.query.items() if name in _REPORT_PARAMETERS}
    asked = read_admin_query({"group_by": _REPORT_GROUPS, **given}, view.period.now)
    table = await UsageReport(engine).read(msgspec.structs.replace(asked, range=view.period.range))
    kind = view.request.url.path.rpartition(".")[2]
    if kind == "json":
        return view.json(table)
    content = csv_of(table).encode() if kind == "csv" else await asyncio.to_thread(parquet_of, table)
    headers = {"content-disposition": f'attachment; filename="usage.{kind}"'}
    return Response(content, media_type=MEDIA_TYPES["csv" if kind == "csv" else "parquet"], headers=headers)


async def _sent(exports: Exports, wanted: RequestFilter, columns: tuple[Column, ...], name: str) -> Stream:
    kind = read_export_format(name.rpartition(".")[2])
    file = f"requests-{wanted.range.from_at:%Y%m%d}-{wanted.range.to_at:%Y%m%d}.{kind}"
    return Stream(
        await exports.open(wanted, columns, kind),
        media_type=MEDIA_TYPES[kind],
        headers={"content-disposition": f'attachment; filename="{file}"'},
    )


EXPORTS = (
    *(page(f"/usage/requests.{kind}", needs="key", data=False)(_own) for kind in MEDIA_TYPES),
    *(page(f"/admin/export/requests.{kind}", data=False)(_all) for kind in MEDIA_TYPES),
    *(page(f"/admin/usage.{kind}", data=False)(_usage) for kind in ("csv", "json", "parquet")),
)
