"""`python -m bench.backtest`: how long a backtest takes over a million finished requests of one model.

Fills an empty database by `bench.usage_rows`, then runs each draft as the settler does, and prints the seconds.
"""

import argparse
import asyncio
import json
import statistics
import time

import asyncpg

from bench.usage_rows import Shape, make_usage
from gateway.db.migrate import upgrade
from gateway.db.session import slow_engine
from gateway.pricing.backtest import Backtest, DiscountDraft, Draft, PriceDraft
from gateway.pricing.conditions import Condition
from gateway.pricing.price import PriceComponent
from gateway.reports.backtest.jobs import Backtests
from gateway.reports.backtest.runner import BacktestRunner

TOKENS = (
    PriceComponent("input_token", 151_234),
    PriceComponent("cached_input_token", 71_234),
    PriceComponent("output_token", 612_345),
    PriceComponent("request", 1_000_000),
)
_MODELS = """
with made as (
  insert into model (name, spec)
  select 'bench-' || n, '{"tasks": ["chat"], "description": "", "routes": [{"pool": "fake"}], "parameters": []}'
  from generate_series(1, $1::int) n returning id
)
insert into price_version (model_id, components, valid_from, source)
select id, '[{"unit": "input_token", "picos": 150000}, {"unit": "output_token", "picos": 600000}]',
  '2020-01-01', 'bench'
from made"""
LARGE = (Condition("resolution", values=("1080p", "4k")),)
"""No row of this business has the trait: the worst case, each row looks and finds nothing."""


def drafts(model_id: int, account_id: int) -> dict[str, Draft]:
    """Give what is rated: a plain price, one with everything that a price may have, and a discount."""
    conditional = (PriceComponent("input_token", 300_000, LARGE), *TOKENS[:1], *TOKENS[1:])
    return {
        "price": PriceDraft(model_id=model_id, model="m", components=TOKENS),
        "price with conditions and a minimum": PriceDraft(
            model_id=model_id, model="m", components=conditional, minimum_nanos=1_000
        ),
        "discount of one account": DiscountDraft(account_id=account_id, discount_ppm=100_000),
    }


async def measure(database_url: str, rows: int, models: int, rounds: int) -> dict[str, object]:
    """Fill a database and run the drafts over it."""
    await upgrade(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute(_MODELS, models)
    await make_usage(database_url, Shape(rows=rows, models=models, days=89))
    await connection.execute("vacuum analyze usage")
    model_id = await connection.fetchval("select model_id from usage group by 1 order by count(*) desc limit 1")
    account_id = await connection.fetchval("select account_id from usage group by 1 order by count(*) desc limit 1")
    await connection.close()
    engine = slow_engine(database_url)
    jobs, runner = Backtests(engine), BacktestRunner(engine)
    figures: dict[str, object] = {}
    for name, draft in drafts(model_id, account_id).items():
        took_s, done = [], None
        for _ in range(rounds):
            job = await jobs.begin(draft, 90, "bench")
            began = time.monotonic()
            await runner.run_one()
            took_s.append(time.monotonic() - began)
            done = await jobs.read(job.id)
        figures[name] = {
            **_told(done),
            "seconds": [round(each, 2) for each in took_s],
            "median_s": round(statistics.median(took_s), 2),
        }
    await engine.dispose()
    return figures


def _told(done: Backtest | None) -> dict[str, object]:
    assert done is not None
    assert done.result is not None, done
    total = done.result.total
    return {"rows": total.requests, "rated": total.requests - total.unrated - total.unsold, "keys": done.result.keys}


def main() -> None:
    """Measure in a database of its own, or in the empty one that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database-url", default="")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.database_url:
        print(json.dumps(asyncio.run(measure(given.database_url, given.rows, given.models, given.rounds)), indent=1))
        return
    from tests.conftest import postgres_server

    with postgres_server() as url:
        print(json.dumps(asyncio.run(measure(url, given.rows, given.models, given.rounds)), indent=1))


if __name__ == "__main__":
    main()
