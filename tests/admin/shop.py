"""A small business with the pages of accounts, keys and requests over it: requests that were really charged."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from gateway.admin.pages import accounts, keys, requests
from gateway.admin.pages.requests.detail import Looks
from gateway.catalog.snapshot import SnapshotSource
from gateway.media.addresses import Addresses
from gateway.queues.port import GatewaySide, QueueUnavailable
from tests.admin.conftest import ORIGIN, SiteHouse, site_house, token_of
from tests.ledger.scene import Scene


class Shop:
    """The business and its dashboard."""

    def __init__(self, scene: Scene, house: SiteHouse) -> None:
        self.scene = scene
        self.house = house


def no_queue(pool: str) -> GatewaySide:
    """Answer for a Redis that is away."""
    raise QueueUnavailable(pool)


@asynccontextmanager
async def open_shop(database_url: str) -> AsyncIterator[Shop]:
    """Open it for the length of a block."""
    scene = await Scene.open(database_url)
    looks = Looks(queue=no_queue, addresses=Addresses("a secret of this test", ORIGIN, 60))
    catalog = SnapshotSource(scene.engine)
    await catalog.refresh()
    pages = [*accounts.PAGES, *keys.PAGES, *requests.PAGES]
    async with site_house(database_url, pages, given={"looks": looks, "catalog": catalog}) as house:
        yield Shop(scene, house)
    await scene.close()


async def send(client: httpx.AsyncClient, path: str, fields: Mapping[str, str]) -> httpx.Response:
    """Load a form and send it filled in, with what is hidden in it."""
    page = await client.get(path)
    assert page.status_code == 200, page.text
    hidden = {"csrf_token": token_of(page.text)}
    mark = 'name="transaction_id" value="'
    if mark in page.text:
        hidden["transaction_id"] = page.text.partition(mark)[2].partition('"')[0]
    return await client.post(path.partition("?")[0], data={**hidden, **fields})
