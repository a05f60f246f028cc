"""What is told of a run: how far it is, what its steps were, and what it comes to."""

from gateway.contract.events import Ended, Event, MediaOutput, Progress, Started, Step
from gateway.contract.units import UNIT_NAMES
from workers.engine import Run
from workers.engines.workflow.ask import Ask
from workers.engines.workflow.options import Graph, Node

PROGRESS_STEP = 0.01
"""The least progress that is told."""


class Account:
    """Keeps progress, trace and units of one run, until it is closed."""

    def __init__(self, run: Run, graph: Graph) -> None:
        self._run = run
        self._graph = graph
        self._done = dict.fromkeys(graph.nodes, 0.0)
        self._whole = sum(node.weight for node in graph.nodes.values()) or 1.0
        self._told = 0.0
        self._closed = False

    def hear(self, node: Node, event: Event) -> None:
        """Take in what a running step says."""
        if isinstance(event, Started):
            self._run.began()
        elif isinstance(event, Progress):
            self.advance(node, event.fraction)

    def advance(self, node: Node, fraction: float) -> None:
        """Say how far the whole is; a step that began again does not take it back."""
        self._done[node.name] = max(self._done[node.name], min(fraction, 1.0))
        nodes = self._graph.nodes
        reached = sum(node.weight * self._done[name] for name, node in nodes.items()) / self._whole
        if reached >= self._told + PROGRESS_STEP:
            self._told = reached
            self._run.progress(reached)

    def note(self, node: Node, ask: Ask, end: Ended) -> None:
        """Put a step into the trace, and its units into the run's where the output comes from it."""
        if self._closed:
            return
        run = self._run
        if end.attempt:
            run.began()
        step = Step(
            node.name,
            node.step.model,
            end.id,
            ask.pool,
            end.worker,
            end.attempt,
            end.outcome,
            end.reason,
            end.units,
            end.phases,
            gpu_us=end.gpu_us,
        )
        run.steps.append(step)
        if node.name in self._graph.giving:
            for name in UNIT_NAMES:
                setattr(run.units, name, getattr(run.units, name) + getattr(end.units, name))

    def measure(self, made: MediaOutput) -> None:
        """Count what was made here in the place of what its parts were."""
        units = self._run.units
        if made.media_type.startswith("video/"):
            units.video_ms, units.pixels = made.duration_ms, made.frames * made.width * made.height
        else:
            units.audio_ms = made.duration_ms

    def close(self) -> None:
        """Note nothing any more: the run has ended."""
        self._closed = True
