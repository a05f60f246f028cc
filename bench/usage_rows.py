"""Usage of the past by the million, for measuring pages and reports: `python -m bench.usage_rows DATABASE_URL`.

The rows, the ledger, the balances and the hourly sums agree to the nano. Runs beside a system that stands still.
"""

import argparse
import asyncio
import time
from pathlib import Path

import asyncpg
import msgspec

from gateway.contract.tasks import TASKS

_SQL = Path(__file__).with_suffix(".sql")
_MEMORY = "set local synchronous_commit = off; set local work_mem = '1GB'; set local maintenance_work_mem = '1GB'"
"""Ten million rows are summed in memory, and their indexes sorted there."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is to make, and over how long a time. `label` sets the names of several runs apart."""

    rows: int = 1_000_000
    keys: int = 1_000
    models: int = 200
    days: int = 90
    label: str = ""
    seed: float = 0.5


async def make_usage(database_url: str, shape: Shape) -> float:
    """Write it all in one transaction. Answers the seconds that it took."""
    began = time.monotonic()
    tasks = ", ".join(f"'{task}'" for task in TASKS)
    script = _SQL.read_text("utf-8").replace("TASKS", tasks)
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            await connection.execute(_MEMORY)
            await connection.execute("select setseed($1)", shape.seed)
            for name in ("rows", "keys", "models", "days", "label"):
                await connection.execute("select set_config($1, $2, true)", f"bench.{name}", str(getattr(shape, name)))
            await connection.execute(script)
    finally:
        await connection.close()
    return time.monotonic() - began


def main() -> None:
    """Read the command line and make the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("database_url")
    for name in ("rows", "keys", "models", "days"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Shape(), name))
    told = parser.parse_args()
    shape = Shape(rows=told.rows, keys=told.keys, models=told.models, days=told.days)
    took_s = asyncio.run(make_usage(told.database_url, shape))
    print(f"{shape.rows:,} rows in {took_s:.0f} s, {shape.rows / took_s:,.0f} a second")


if __name__ == "__main__":
    main()
