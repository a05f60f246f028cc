"""`python -m bench.pages`: how long the dashboard's pages and reports take over millions of finished requests.

A stack of its own is filled by bench.usage_rows. Each page is called 20 times in turn, by one caller, beside everything
else on the same machine; what is judged is the 95th percentile of them (the 19th of 20), how many requests a browser
needs to draw the page, and how quickly an export comes out of a gateway that stays small.
"""

import argparse
import asyncio
import hashlib
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import asyncpg
import httpx
import msgspec

from bench.__main__ import RESULTS, commit, say
from bench.bars import Check
from bench.page_paths import Found, admin_paths, api_paths, owner_paths
from bench.servers import ROOT
from bench.stack import Stack, running_stack
from bench.usage_rows import Shape, make_usage

CALLS = 20
MOST_MS = 300.0
MOST_REQUESTS = 8
LEAST_ROWS_PER_S = 50_000.0
MOST_MB = 200.0
CLOSE_S = 1800.0
_PARTS = re.compile(
    r'<link rel="(?:stylesheet|icon)"[^>]* href="([^"]+)"|<(?:script|img)[^>]* src="([^"]+)"|hx-sse:connect="([^"]+)"'
)


class PageFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How a page did."""

    path: str
    p50_ms: float
    p95_ms: float
    worst_ms: float
    kilobytes: float
    requests: int
    status: int


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """What a stack was filled with."""

    rows: int
    fill_s: float
    close_s: float


class PagesReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run leaves behind."""

    at: datetime
    commit: str
    rows: int
    fill_s: float
    close_s: float
    """How long the settler took to close all hours."""
    books_s: float | None
    """How long a settler took to go through all books; None where that was not waited for."""
    export_rows_per_s: float
    gateway_mb: float
    pages: list[PageFigures]
    checks: list[Check]


def measure(client: httpx.Client, path: str) -> PageFigures:
    """Call a page again and again."""
    took: list[float] = []
    answer = client.get(path)  # templates and plans are made once
    for _ in range(CALLS):
        began = time.perf_counter()
        answer = client.get(path)
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    return PageFigures(
        path=path,
        p50_ms=took[CALLS // 2 - 1],
        p95_ms=took[-(-CALLS * 95 // 100) - 1],
        worst_ms=took[-1],
        kilobytes=len(answer.content) / 1024,
        requests=1 + len({one for parts in _PARTS.findall(answer.text) for one in parts if one}),
        status=answer.status_code,
    )


def signed_in(base_url: str, key: str, home: str) -> httpx.Client:
    """Sign in as a browser does."""
    client = httpx.Client(base_url=base_url, timeout=60, trust_env=False)
    token = re.search(r'name="csrf_token" value="([^"]+)"', client.get(f"{home}/sign-in").text)
    assert token is not None
    done = client.post(f"{home}/sign-in", data={"csrf_token": token[1], "key": key})
    assert done.status_code == 303, done.status_code
    return client


async def look(stack: Stack, secret: str, model: str) -> Found:
    """Find the busiest, and let the busiest key be opened by a secret that is known."""
    connection = await asyncpg.connect(stack.connection.database_url)
    try:
        busiest = "select api_key_id from rollup_day_key group by 1 order by sum(requests) desc limit 1"
        key_id = await connection.fetchval(busiest)
        digest = hashlib.sha256(secret.encode()).digest()
        await connection.execute("update api_key set hash = sha256(hash) where hash = $1", digest)
        number = await connection.fetchval("update revision set keys = keys + 1 returning keys")
        await connection.execute("update api_key set hash = $1, revision = $2 where id = $3", digest, number, key_id)
        request = await connection.fetchval(
            "select id from usage where api_key_id = $1 order by id desc limit 1", key_id
        )
        return Found(
            account_id=await connection.fetchval("select account_id from api_key where id = $1", key_id),
            key_id=key_id,
            model=model,
            request_id=f"req_{request.hex}",
            secret=secret,
        )
    finally:
        await connection.close()


def busiest_model(api: httpx.Client) -> str:
    """Find the busiest of the models that the catalog lists."""
    models = api.get("/admin/models.json?range=90d&sort=-requests").json()["models"]
    return str(models[0]["model"])


async def closed(stack: Stack) -> None:
    """Wait until the settler has made the coarser sums."""
    connection = await asyncpg.connect(stack.connection.database_url)
    try:
        end = time.monotonic() + CLOSE_S
        ready = "select closed_through > now() - interval '2 hours' from rollup_state"
        while not await connection.fetchval(ready):
            if time.monotonic() > end:
                raise TimeoutError("the hours were not closed")
            await asyncio.sleep(1)
    finally:
        await connection.close()


async def vacuumed(stack: Stack) -> None:
    """Leave Postgres as autovacuum would."""
    connection = await asyncpg.connect(stack.connection.database_url)
    try:
        await connection.execute("vacuum (analyze)")
    finally:
        await connection.close()


@contextmanager
def watching(pid: int) -> Iterator[list[float]]:
    """Watch the memory of a process in MB; what is given grows to its largest."""
    most, over = [0.0], Event()

    def watch() -> None:
        while not over.wait(0.05):
            most[0] = max(most[0], rss_mb(pid))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def rss_mb(pid: int) -> float:
    """Read how much memory a process has."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) / 1024


def export(client: httpx.Client, path: str) -> float:
    """Read an export to its end; answers rows a second."""
    rows, began = 0, time.monotonic()
    with client.stream("GET", path) as answer:
        answer.raise_for_status()
        for chunk in answer.iter_raw(1 << 20):
            rows += chunk.count(b"\n")
    return rows / (time.monotonic() - began)


def verified(client: httpx.Client) -> tuple[bool, float]:
    """Have a settler go through all books; answers whether they hold, and the seconds that it took."""
    job = client.post("/admin/api/books/jobs").json()
    while True:
        told: dict[str, Any] = client.get(f"/admin/api/books/jobs/{job['id']}").json()
        if told["finished_at"]:
            run = client.get(f"/admin/api/books/runs/{told['run_id']}").json()
            return run["green"], run["took_ms"] / 1000
        time.sleep(1)


def judge(pages: Sequence[PageFigures], rate: float, mb: float) -> list[Check]:
    """Hold the figures to the bars."""
    checks = [
        Check(
            name=one.path,
            asked=f"200, < {MOST_MS:.0f} ms, <= {MOST_REQUESTS} requests",
            measured=f"{one.status}, {one.p95_ms:.0f} ms, {one.requests} requests",
            passed=one.status == 200 and one.p95_ms < MOST_MS and one.requests <= MOST_REQUESTS,
        )
        for one in pages
    ]
    return [
        *checks,
        Check(
            name="export",
            asked=f">= {LEAST_ROWS_PER_S:,.0f} rows/s",
            measured=f"{rate:,.0f}",
            passed=rate >= LEAST_ROWS_PER_S,
        ),
        Check(name="gateway's memory", asked=f"< {MOST_MB:.0f} MB", measured=f"{mb:.0f}", passed=mb < MOST_MB),
    ]


def filled(stack: Stack, shape: Shape) -> Filled:
    """Make the rows, or find those that were made there before."""
    note = stack.data / "filled.json"
    if note.exists():
        asyncio.run(closed(stack))
        return msgspec.json.decode(note.read_bytes(), type=Filled)
    say(f"making {shape.rows:,} rows")
    fill_s = asyncio.run(make_usage(stack.connection.database_url, shape))
    say(f"made in {fill_s:.0f} s; closing the hours")
    began = time.monotonic()
    asyncio.run(closed(stack))
    close_s = time.monotonic() - began
    asyncio.run(vacuumed(stack))
    made = Filled(rows=shape.rows, fill_s=fill_s, close_s=close_s)
    note.write_bytes(msgspec.json.encode(made))
    return made


def run(shape: Shape, data: Path | None) -> PagesReport:
    """Fill a stack, and measure."""
    with running_stack(["fake-chat"], {"FAREGATE_BOOKS_EVERY_S": "0"}, data=data) as stack:
        secret = stack.create_key(f"bench {datetime.now(UTC):%H:%M:%S}")  # another one in each run
        made = filled(stack, shape)
        base_url, admin_key = stack.connection.base_url, stack.connection.admin_key
        admin = signed_in(base_url, admin_key, "/admin")
        found = asyncio.run(look(stack, secret, busiest_model(admin)))
        time.sleep(3)  # until every gateway knows the key
        owner = signed_in(base_url, secret, "/usage")
        api = httpx.Client(base_url=base_url, timeout=600, headers={"authorization": f"Bearer {admin_key}"})
        gateway = next(each.pid for each in stack.connection.processes if each.role == "gateway")
        with watching(gateway) as most_mb:
            pages = []
            for client, paths in ((admin, admin_paths(found)), (owner, owner_paths()), (api, api_paths(found))):
                for path in paths:
                    pages.append(measure(client, path))
                    say(f"{pages[-1].p95_ms:7.0f} ms  {path}")
            say("an export")
            rate = export(admin, "/admin/export/requests.csv?range=90d")
        report = told(made, pages, rate, most_mb[0])
        write(report)  # going through the books takes long
        say("the books")
        green, books_s = verified(api)
    books = Check(name="books verify", asked="green", measured="green" if green else "broken", passed=green)
    report = msgspec.structs.replace(report, books_s=books_s, checks=[*report.checks, books])
    print(f"written to {write(report).relative_to(ROOT)}")
    return report


def told(made: Filled, pages: list[PageFigures], rate: float, mb: float) -> PagesReport:
    """Put the report together, but for the books."""
    return PagesReport(
        at=datetime.now(UTC),
        commit=commit(),
        rows=made.rows,
        fill_s=made.fill_s,
        close_s=made.close_s,
        books_s=None,
        export_rows_per_s=rate,
        gateway_mb=mb,
        pages=pages,
        checks=judge(pages, rate, mb),
    )


def write(report: PagesReport) -> Path:
    """Write what a run leaves behind."""
    path = RESULTS / f"pages-{report.at:%Y%m%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    return path


def main() -> int:
    """Measure, print and write; 0 where every bar is met."""
    words = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    words.add_argument("--rows", type=int, default=10_000_000)
    words.add_argument("--data", type=Path, help="a folder to keep the stack in, which is filled only once")
    given = words.parse_args()
    report = run(Shape(rows=given.rows), given.data)
    for check in report.checks:
        print(f"{'met   ' if check.passed else 'missed'}  {check.name:<70} {check.measured:<34} {check.asked}")
    books = f"all books verified in {report.books_s:.0f} s"
    print(f"{report.rows:,} rows, made in {report.fill_s:.0f} s, closed in {report.close_s:.0f} s; {books}")
    return 0 if all(check.passed for check in report.checks) else 1


if __name__ == "__main__":
    sys.exit(main())
