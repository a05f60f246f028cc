"""One card of a page: when it fails or takes too long, only it says so, and the page stands."""

import asyncio
from collections.abc import Awaitable
from typing import Generic, TypeVar

import msgspec
import structlog

from gateway.db.reading import TookTooLong
from gateway.errors import FaregateError

log = structlog.get_logger()

T = TypeVar("T")


class Card(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What a card shows, or why it cannot."""

    value: T | None = None
    failure: str = ""


async def card(work: Awaitable[T], name: str, page_id: str) -> Card[T]:
    """Do what a card needs. What goes wrong is logged under the page's id, and told on the card."""
    try:
        return Card(value=await work)
    except TookTooLong as error:
        log.warning("page.card_slow", card=name, page_id=page_id)
        return Card(failure=error.message)
    except FaregateError as error:
        log.warning("page.card_failed", card=name, page_id=page_id, reason=error.code)
        return Card(failure=error.message)


async def cards(page_id: str, **works: Awaitable[T]) -> dict[str, Card[T]]:
    """Do the work of several cards side by side; answers each by its name."""
    done = await asyncio.gather(*(card(work, name, page_id) for name, work in works.items()))
    return dict(zip(works, done, strict=True))
