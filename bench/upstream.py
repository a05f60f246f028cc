"""Faregate in front of an upstream: the same mock that peers are measured with, every request priced and charged."""

import msgspec

from bench.figures import Rounds
from bench.rounds import pace, saturate, spread, streamed
from bench.servers import asgi_server
from bench.stack import running_stack
from bench.target import Plan, Target

NAME = "Faregate, upstream"
POOL = "cloud"

CATALOG = """\
pools:
  {pool}: {{engine: upstream}}
upstreams:
  mock: {{protocol: openai, url: "http://127.0.0.1:{port}/v1", pool: {pool}}}
models:
  mock:
    tasks: [chat]
    description: The mock upstream, sold by the token.
    context_tokens: 8192
    max_output_tokens: 100
    price:
      - {{usd: 1, per: 1M input tokens}}
      - {{usd: 4, per: 1M output tokens}}
    routes:
      - {{upstream: mock, model: mock, cost: [{{usd: 0.5, per: 1M input tokens}}, {{usd: 2, per: 1M output tokens}}]}}
"""


def measure_upstream(plan: Plan) -> Rounds:
    """Measure a stack of its own whose only model is served by the mock. The mock's CPU is not counted."""
    environ = {"FAREGATE_UPSTREAM_MOCK_KEY": "sk-mock-0123456789abcdef"}
    with asgi_server("bench.mock:app") as (port, pid):
        mock = Target(name="mock", port=port, processes={pid: "mock"}, chat_model="mock", stream_model="mock")
        mock.warm(1, plan.connections)
        once = msgspec.structs.replace(plan, rounds=1)
        own = Rounds(target="mock", paced=pace(mock, once), streamed=streamed(mock, once), spread=spread(mock, once))
        catalog = CATALOG.format(port=port, pool=POOL)
        with running_stack(["mock"], environ, engines="upstream", catalog=catalog) as stack:
            target = Target(
                name=NAME,
                port=stack.port,
                processes=stack.processes(POOL),
                chat_model="mock",
                stream_model="mock",
                api_key=stack.create_key("bench"),
            )
            return Rounds(
                target=NAME,
                saturated=saturate([target], plan)[NAME],
                paced=pace(target, plan),
                streamed=streamed(target, plan),
                spread=spread(target, plan),
                memory=target.memory("gateway", "worker", "settler"),
                chunks_per_stream=target.chunks_per_stream(),
                engine_ms=own.paced[0].load.latency_ms.p50,
                engine_first_ms=own.streamed[0].load.first_event_ms.p50,
                engine_spread_first_ms=own.spread[0].load.first_event_ms.p50,
            )
