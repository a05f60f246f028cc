"""One request: where its time and its money went."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.requests.bill import bill_of
from gateway.admin.pages.requests.waterfall import draw
from gateway.admin.site.cards import cards
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.contract.events import media_of
from gateway.contract.units import UNIT_NAMES
from gateway.ledger.records import Refund
from gateway.ledger.refunds import Refunds
from gateway.media.addresses import Addresses
from gateway.queues.port import GatewaySide, QueueUnavailable, Standing
from gateway.reports.request_story import Story, read_story
from gateway.webhooks.deliveries import Deliveries, Delivery, DeliveryQuery

REASONS = {
    "done": "It was done.",
    "engine_error": "The engine failed on it.",
    "engine_lost": "The engine died under it.",
    "refused_by_engine": "The engine found its input unusable.",
    "worker_lost": "It was taken as often as allowed, and no worker finished it.",
    "gateway_lost": "The gateway that held its input was lost.",
    "client_gone": "Its caller left before the end.",
    "cancelled_by_caller": "It was cancelled.",
    "deadline": "Its deadline passed.",
    "queue_lost": "The queue was away for too long.",
    "upstream_error": "The upstream failed, or answered what cannot be read.",
    "upstream_timeout": "The upstream did not answer in time.",
    "upstream_limited": "The upstream takes no more for now.",
    "upstream_unknown": "Nobody can tell whether the upstream took it.",
    "blocked": "Its content was blocked.",
}
TONES = {"succeeded": "good", "failed": "bad", "expired": "bad", "cancelled": "warn"}
KINDS = ("charge", "top-up", "refund", "adjustment")


class Looks(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of a request looks at beside Postgres."""

    queue: Callable[[str], GatewaySide]
    addresses: Addresses

    async def standing(self, story: Story) -> Standing | None:
        """Say where an open request is; None while nobody can say."""
        try:
            return await self.queue(story.pool).standing(story.id)
        except QueueUnavailable:
            return None


class Medium(msgspec.Struct, frozen=True, kw_only=True):
    """A kept file of an output."""

    path: str
    media_type: str
    size_bytes: int
    words: str

    @property
    def kind(self) -> str:
        """Its kind: image, audio, video or another."""
        return self.media_type.partition("/")[0]


@page("/admin/requests/{request_id:str}", data=False)
async def show_request(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    looks: NamedDependency[Looks],
    request_id: FromPath[str],
) -> Response[Any]:
    """Show one request."""
    story = await read_story(engine, request_id)
    standing = None if story.end else await looks.standing(story)
    if view.wants_data:
        return _data(view, story)
    found: dict[str, Any] = await cards(
        view.page_id, refunds=_refunds(engine, story), deliveries=_deliveries(engine, story)
    )
    return view.render(
        "request.html",
        story=story,
        end=story.end,
        standing=standing,
        waterfall=draw(story, running=standing is not None and standing.state == "leased"),
        bill=bill_of(story),
        reasons=REASONS,
        tones=TONES,
        kinds=KINDS,
        units=_units(story),
        media=media(story, looks.addresses),
        base=looks.addresses.base,
        **found,
    )


def media(story: Story, addresses: Addresses) -> Sequence[Medium]:
    """Give the kept files of a request, by paths on this very host: the page's policy lets no other in."""
    found = []
    for item in media_of(story.kept.output):
        url = addresses.of_output(item)
        if url is not None:
            size = f"{item.width} x {item.height}" if item.width else f"{item.duration_ms / 1000:.2f} s"
            words = f"{item.role or 'output'}, {item.media_type}, {size if item.width or item.duration_ms else ''}"
            path = url.removeprefix(addresses.base)
            found.append(
                Medium(path=path, media_type=item.media_type, size_bytes=item.size_bytes, words=words.rstrip(", "))
            )
    return found


def _units(story: Story) -> list[tuple[str, int]]:
    if story.end is None:
        return []
    return [(name.replace("_", " "), n) for name in UNIT_NAMES if (n := getattr(story.end.units, name))]


async def _refunds(engine: AsyncEngine, story: Story) -> Sequence[Refund]:
    return (await Refunds(engine).of_request(story.id)).refunds if story.end else ()


async def _deliveries(engine: AsyncEngine, story: Story) -> Sequence[Delivery]:
    return await Deliveries(engine).list(DeliveryQuery(request_id=story.id, limit=20))


def _data(view: View, story: Story) -> Response[Any]:
    """Give the request as JSON, without what it said."""
    plain = msgspec.to_builtins(msgspec.structs.replace(story, kept=type(story.kept)()))
    del plain["kept"]
    if view.format == "csv":
        drawn = draw(story)
        rows = [
            (row.title, segment.phase, segment.start_us, segment.us) for row in drawn.rows for segment in row.segments
        ]
        return view.csv(story.id, ("attempt", "phase", "start_us", "us"), rows)
    return view.json(plain)
