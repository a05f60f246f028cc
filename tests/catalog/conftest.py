"""What the tests of the catalog in Postgres share."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.model import Catalog, Model, Pool, Route, Upstream
from gateway.db.session import slow_engine
from gateway.money import parse_price
from gateway.pricing.price import PriceComponent


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """Answer an engine on this test's database."""
    made = slow_engine(database_url)
    yield made
    await made.dispose()


def a_model(name: str = "m", **fields: Any) -> Model:
    """Make a model that a fake pool serves."""
    plain: dict[str, Any] = {
        "name": name,
        "tasks": ("chat",),
        "description": "A model.",
        "routes": (Route(pool="fake"),),
        "context_tokens": 100,
    }
    return Model(**(plain | fields))


def per_request(usd: str) -> tuple[PriceComponent, ...]:
    """Make a price per request."""
    return (PriceComponent("request", parse_price(usd)),)


def a_catalog(*models: Model, usd: str = "0.001", upstreams: tuple[Upstream, ...] = (), **pools: Pool) -> Catalog:
    """Make a catalog in which every model costs `usd` a request."""
    listed = models or (a_model(),)
    return Catalog(
        pools=pools or {"fake": Pool(name="fake", engine="fake")},
        models={model.name: model for model in listed},
        prices={model.name: per_request(usd) for model in listed},
        upstreams={upstream.name: upstream for upstream in upstreams},
    )
