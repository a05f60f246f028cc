"""`python -m bench [--peers]`: measure the stack, print the table, write a result, exit 1 where a bar is missed."""

import argparse
import platform
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path

import msgspec

from bench.bars import Bars, Check, UpstreamBars, judge, judge_upstream
from bench.build import build_client
from bench.figures import Figures, Rounds, summarize
from bench.peers import measure_peers
from bench.rounds import measure_floor, pace, saturate, spread, streamed
from bench.servers import ROOT, asgi_server
from bench.stack import Stack, running_stack
from bench.table import Column, render
from bench.target import Plan, Target
from bench.upstream import measure_upstream

RESULTS = Path(__file__).parent / "results"
STACK, RAW, TYPED = "Faregate", "@asgi route", "typed route"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run leaves behind."""

    at: datetime
    commit: str
    machine: str
    seconds: float
    figures: dict[str, Figures]
    checks: list[Check]
    notes: list[str]
    rounds: list[Rounds]


def measure_stack(stack: Stack, plan: Plan) -> list[Rounds]:
    """Measure the stack beside the floors: three targets, the stack first."""
    with ExitStack() as servers:
        targets = [_stack_target(stack)]
        for name, application in ((RAW, "bench.floor:raw"), (TYPED, "bench.floor:typed")):
            port, pid = servers.enter_context(asgi_server(application, "--factory"))
            targets.append(Target(name=name, port=port, processes={pid: "server"}, chat_model="floor"))
        say("64 connections, closed loop")
        saturated = saturate(targets, plan)
        say("50 requests/s, open loop")
        floors = [measure_floor(target, saturated[target.name], plan) for target in targets[1:]]
        paced = pace(targets[0], plan)
    say("50 streams")
    chunks = targets[0].chunks_per_stream()
    own = Rounds(
        target=STACK,
        saturated=saturated[STACK],
        paced=paced,
        streamed=streamed(targets[0], plan),
        spread=spread(targets[0], plan),
        memory=targets[0].memory("gateway", "worker", "settler"),
        chunks_per_stream=chunks,
    )
    return [own, *floors]


def _stack_target(stack: Stack) -> Target:
    return Target(
        name=STACK,
        port=stack.port,
        processes=stack.processes("fake"),
        chat_model="fake-chat",
        stream_model="fake-stream",
        api_key=stack.create_key("bench"),
    )


def verify_books(stack: Stack) -> Check:
    """Have the books verified after all this load."""
    done = stack.command("books", "verify")
    words = (done.stdout.strip() or done.stderr.strip()).splitlines()
    measured = "green" if done.returncode == 0 else (words[-1] if words else "no answer")
    return Check(name="books verify", asked="green", measured=measured, passed=done.returncode == 0)


def say(line: str) -> None:
    """Tell whoever waits what is being done."""
    print(f"  {line} ...", file=sys.stderr, flush=True)


def commit() -> str:
    """Name the commit that is measured, with `+` where the checkout differs from it."""
    command = ["git", "describe", "--always", "--dirty=+"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout.strip() or "unknown"


def write(report: Report) -> Path:
    """Write the report into bench/results under its instant."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{report.at:%Y%m%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    return path


def main() -> int:
    """Measure, print and write; 0 where every bar is met."""
    words = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    words.add_argument("--peers", action="store_true", help="measure LiteLLM's proxy too, in an environment of its own")
    peers = words.parse_args().peers
    began, at, plan = time.monotonic(), datetime.now(UTC), Plan()
    build_client()
    say("starting the stack")
    with running_stack(["fake-chat", "fake-stream"]) as stack:
        rounds = measure_stack(stack, plan)
        books = verify_books(stack)
        notes = []
        if peers:
            say("LiteLLM")
            found = measure_peers(plan, stack.connection.database_url)
            rounds += found.rounds
            notes += found.notes
    say("an upstream")
    cloud = measure_upstream(plan)
    rounds.insert(1, cloud)
    figures = {each.target: summarize(each) for each in rounds}
    checks = [
        *judge(figures[STACK], figures[RAW], Bars()),
        *judge_upstream(figures[cloud.target], UpstreamBars()),
        books,
    ]
    report = Report(
        at=at,
        commit=commit(),
        machine=f"{cpu_count()} processors, {platform.platform()}, Python {platform.python_version()}",
        seconds=time.monotonic() - began,
        figures=figures,
        checks=checks,
        notes=notes,
        rounds=rounds,
    )
    print(render([Column(name=name, figures=each) for name, each in figures.items()], checks))
    print("\n".join(notes))
    print(f"{report.machine}; {report.seconds:.0f} s; written to {write(report).relative_to(ROOT)}")
    return 0 if all(check.passed for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
