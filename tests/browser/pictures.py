"""Draws docs/screenshots: every page of the dashboard, light and dark, of a system with a past and some work in hand.

python -m tests.browser.pictures [NAME ...]     (`make screenshots`)
"""

import asyncio
import io
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import asyncpg
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from bench.usage_rows import Shape, make_usage
from deploy.browser import make
from tests.browser.showcase import Places, work_in_hand
from tests.browser.visit import FLAGS, Visit
from tests.system import System, running_system

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
CATALOG = Path(__file__).parent / "catalog.yaml"
PAST = Shape(rows=60_000, keys=28, models=4, days=40)
CLOSED_S = 300
SETTLED_MS = 1_500
"""For charts and live figures to be there."""

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
ON_A_PHONE = ("overview", "price", "keys", "request", "usage")


def draw(system: System, places: Places, browser: Browser, wanted: list[str]) -> None:
    """Draw the wanted pages, all where none is named."""
    for theme in THEMES:
        for phone in (False, True):
            operator, owner = (Visit(browser, system.base_url, theme=theme, phone=phone) for _ in range(2))
            operator.sign_in(system.admin_key)
            owner.sign_in(places.owner_key, "/usage")
            for name, path in places.paths.items():
                if (wanted and name not in wanted) or (phone and name not in ON_A_PHONE):
                    continue
                visit = owner if path.startswith("/usage") else operator
                save(visit, path, f"{name}-phone-{theme}" if phone else f"{name}-{theme}")
            operator.end()
            owner.end()


def save(visit: Visit, path: str, name: str) -> None:
    """Draw one page."""
    visit.page.goto(path)
    visit.page.wait_for_timeout(SETTLED_MS)
    picture = Image.open(io.BytesIO(visit.page.screenshot()))
    picture.convert("RGB").save(FOLDER / f"{name}.png", optimize=True)
    print(f"docs/screenshots/{name}.png", flush=True)


async def adopt(database_url: str) -> str:
    """Take over the key that spent the most: its new secret, as if it had been that all along."""
    secret = "fg_live_" + secrets.token_urlsafe(32)
    connection = await asyncpg.connect(database_url)
    async with connection.transaction():
        revision = await connection.fetchval("update revision set keys = keys + 1 returning keys")
        await connection.execute(
            "update api_key set hash = sha256($1), prefix = left(convert_from($1, 'UTF8'), 12), revision = $2"
            " where id = (select id from api_key order by used_nanos desc limit 1)",
            secret.encode(),
            revision,
        )
    await connection.close()
    return secret


async def until_closed(database_url: str) -> None:
    """Wait until the settler has made the coarser sums of the past."""
    connection = await asyncpg.connect(database_url)
    async with asyncio.timeout(CLOSED_S):
        while not await connection.fetchval("select closed_through > now() - interval '3 hours' from rollup_state"):
            await asyncio.sleep(0.5)
    await connection.close()


def main(wanted: list[str]) -> None:
    """Start a system, give it a past, and draw."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # Postgres runs as another user
        with running_system(Path(folder) / "data", "--catalog", str(CATALOG)) as system:
            system.wait_ready("scribe", "painter")
            asyncio.run(make_usage(system.database_url, PAST))
            asyncio.run(until_closed(system.database_url))
            owner_key = asyncio.run(adopt(system.database_url))
            with system.admin() as admin:
                job = admin.post("/admin/api/books/verify").raise_for_status().json()["id"]
                while admin.get(f"/admin/api/books/jobs/{job}").raise_for_status().json()["finished_at"] is None:
                    time.sleep(0.5)
            with work_in_hand(system, owner_key) as places, sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=str(make()), args=FLAGS)
                draw(system, places, browser, wanted)
                browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
