"""One database for the tests of a module."""

from collections.abc import AsyncIterator

import pytest

from tests.ledger.patience import patience  # noqa: F401 - an autouse fixture
from tests.webhooks.office import Office


@pytest.fixture
async def office(module_database_url: str) -> AsyncIterator[Office]:
    async with Office(module_database_url) as made:
        yield made
