"""After the faults: wait until nothing is open, then hold everything that was said against the books."""

import asyncio
import json
import time

import asyncpg
import httpx
import msgspec

from gateway.contract.ids import uuid_of
from tests.chaos.traffic import Memory
from tests.system import System

DRAIN_S = 240.0
POLL_S = 0.2


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What `books verify` says: what is broken, and how many requests the books hold."""

    broken: list[str]
    open_requests: int
    usage_rows: int


async def drain(system: System) -> float:
    """Wait until no request is open; answers how long that took."""
    began = time.monotonic()
    while time.monotonic() - began < DRAIN_S:
        if await count_open(system) == 0:
            return time.monotonic() - began
        await asyncio.sleep(POLL_S)
    raise AssertionError(f"{await count_open(system)} requests are still open after {DRAIN_S} s")


async def count_open(system: System) -> int:
    """Count the open requests; -1 while Postgres is away."""
    try:
        connection = await asyncpg.connect(system.database_url, timeout=5)
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return -1
    try:
        return int(await connection.fetchval("select count(*) from open_request"))
    finally:
        await connection.close()


def verify_books(system: System, allowed_repeats: int) -> Verdict:
    """Run `faregate books verify`; its exit code and its report must agree."""
    done = system.run("books", "verify", "--allowed-repeats", str(allowed_repeats), "--json")
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    broken = [check["invariant"] for check in report["checks"] if check["verdict"] != "holds"]
    assert (done.returncode == 0) == (not broken), report
    return Verdict(broken=broken, open_requests=report["open_requests"], usage_rows=report["usage_rows"])


async def charges(system: System) -> dict[str, list[int]]:
    """Give what the ledger charged each request: one amount each, if all is well."""
    connection = await asyncpg.connect(system.database_url)
    try:
        rows = await connection.fetch(
            "select transaction_id, array_agg(amount_nanos) as amounts from ledger_entry"
            " where kind = 0 and account_id = 0 group by 1"
        )
    finally:
        await connection.close()
    return {str(row["transaction_id"]): list(row["amounts"]) for row in rows}


async def hold_to_the_books(system: System, key: str, memory: Memory) -> None:
    """Check that what callers were told is what happened, and that all that was accepted has ended."""
    assert memory.contradictions == []
    booked = await charges(system)
    for told in memory.told:
        assert booked[str(uuid_of(told.request_id))] == [told.charge_nanos], told
    async with httpx.AsyncClient(base_url=system.base_url, headers={"authorization": f"Bearer {key}"}) as client:
        for request_id in memory.accepted.values():
            shown = (await client.get(f"/v1/requests/{request_id}")).json()
            assert shown["status"] == "succeeded", shown
            assert booked[str(uuid_of(request_id))] == [shown["charge_nanos"]], shown
