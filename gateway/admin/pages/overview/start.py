"""The overview before the first request: four steps that tick themselves off."""

from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.catalog.model import Model
from gateway.catalog.snapshot import SnapshotSource
from gateway.db.reading import reading

_STANDING = text(
    """
    select exists(select from api_key where revoked_at is null) as has_key,
           exists(select from usage) or exists(select from open_request) as has_request,
           exists(select from usage) as has_ended
    """
)


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the first steps are done."""

    has_price: bool
    has_key: bool
    has_request: bool
    has_ended: bool
    call: str
    """A call to copy."""

    @property
    def is_over(self) -> bool:
        """Whether there is something to show."""
        return self.has_ended


async def read_start(engine: AsyncEngine, catalog: SnapshotSource, base_url: str) -> Start:
    """Look which steps are done. Raises Unavailable."""
    models = catalog.snapshot().models.values()
    priced = [model for model in models if model.price is not None]
    async with reading(engine) as connection:
        row = (await connection.execute(_STANDING)).one()
    return Start(
        has_price=bool(priced),
        has_key=row.has_key,
        has_request=row.has_request,
        has_ended=row.has_ended,
        call=_call(priced or list(models), base_url),
    )


@page("/admin/start", data=False)
async def show_start(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    catalog: NamedDependency[SnapshotSource],
    base_url: NamedDependency[str],
) -> Response[Any]:
    """Show the four steps as they stand; the page asks again every two seconds."""
    start = await read_start(engine, catalog, base_url)
    if start.is_over and view.is_htmx:
        return view.redirect("/admin")
    return view.render("overview_steps.html", start=start)


def _call(models: list[Model], base_url: str) -> str:
    """Write a call of the first model that chats, else of any, as a line to copy."""
    chat = next((model for model in models if "chat" in model.tasks), None)
    headers = ' -H "Authorization: Bearer $FAREGATE_API_KEY" \\\n  -H "Content-Type: application/json" \\\n'
    head = f"curl {base_url}/v1/{{}} \\\n " + headers
    if chat is not None:
        body = f'  -d \'{{"model": "{chat.name}", "messages": [{{"role": "user", "content": "Hello"}}]}}\''
        return head.format("chat/completions") + body
    name = models[0].name if models else "MODEL"
    return head.format("requests") + f'  -d \'{{"model": "{name}", "input": {{"prompt": "A red barn at dawn"}}}}\''
