"""The order of the rounds: targets and floors take turns, because the machine's speed drifts within minutes."""

from bench.figures import Round, Rounds
from bench.target import Plan, Target


def saturate(targets: list[Target], plan: Plan) -> dict[str, list[Round]]:
    """Load every target in turn at `plan.connections`, `plan.rounds` times; the first is the one under test."""
    taken: dict[str, list[Round]] = {target.name: [] for target in targets}
    for target in targets:
        target.warm(plan.warm_s if target is targets[0] else plan.floor_s / 2, plan.connections)
    for _ in range(plan.rounds):
        for target in targets:
            seconds = plan.saturated_s if target is targets[0] else plan.floor_s
            taken[target.name].append(target.round(target.chat(plan.connections, 0, seconds)))
    return taken


def pace(target: Target, plan: Plan) -> list[Round]:
    """Load a target at a fixed rate, far below what it can do."""
    return [target.round(target.chat(plan.connections, plan.rate, plan.paced_s)) for _ in range(plan.rounds)]


def streamed(target: Target, plan: Plan) -> list[Round]:
    """Load a target with streams that begin at the same moment."""
    return [target.round(target.stream(plan.streams, plan.streamed_s)) for _ in range(plan.rounds)]


def spread(target: Target, plan: Plan) -> list[Round]:
    """Load a target with as many streams, which begin one after the other as those of independent callers do."""
    load = target.stream(2 * plan.streams, plan.streamed_s, rate=plan.streams / plan.stream_length_s)
    return [target.round(load) for _ in range(plan.rounds)]


def measure_floor(target: Target, saturated: list[Round], plan: Plan) -> Rounds:
    """Complete a floor's rounds with one at a fixed rate."""
    return Rounds(target=target.name, saturated=saturated, paced=pace(target, plan)[:1], memory=target.memory())
