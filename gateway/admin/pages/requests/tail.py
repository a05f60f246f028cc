"""What came in since the list was drawn: it waits behind its number, so that no row moves under the pointer."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from litestar.di import NamedDependency
from litestar.response import ServerSentEvent
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.requests.asked import Asked, read_asked
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.contract.ids import uuid_of
from gateway.db.reading import TookTooLong
from gateway.errors import InvalidRequest, Unavailable
from gateway.reports.ranges import Range
from gateway.reports.request_filter import RequestFilter
from gateway.reports.request_list import MOST_NEW, count_new

EVERY_S = 2.0
MOST_STREAM_S = 600.0
"""A stream ends after so long and is opened again: by then its session may be over."""


@page("/admin/requests/new", data=False)
async def follow_requests(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> ServerSentEvent:
    """Stream how many requests came in after the one that `since` names, under the filters of the list."""
    try:
        since = uuid_of(view.query.get("since", ""))
    except ValueError:
        raise InvalidRequest("'since' is the id of a request.", param="since") from None
    asked = await read_asked(engine, view.query, view.period.range)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return ServerSentEvent(_counts(view, engine, asked, since), headers=headers)


async def _counts(view: View, engine: AsyncEngine, asked: Asked, since: UUID) -> AsyncIterator[str]:
    fresh_path = view.frame().link("/admin/requests", **asked.given)
    until = datetime.now(UTC) + timedelta(seconds=MOST_STREAM_S)
    while datetime.now(UTC) < until:
        try:
            number = await count_new(engine, to_now(asked), since)
        except (TookTooLong, Unavailable):
            number = 0
        shown = f"{MOST_NEW - 1}+" if number >= MOST_NEW else str(number)
        yield str(view.render("requests_new.html", number=number, shown=shown, fresh_path=fresh_path).content)
        await asyncio.sleep(EVERY_S)


def to_now(asked: Asked) -> RequestFilter:
    """Let the range reach beyond the present hour: what is new ends in it."""
    wanted = asked.wanted
    during = Range(wanted.range.from_at, max(wanted.range.to_at, datetime.now(UTC) + timedelta(hours=1)))
    return msgspec.structs.replace(wanted, range=during)
