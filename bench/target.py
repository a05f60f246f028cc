"""What is loaded: an HTTP server with its processes, and the three loads that are put on it."""

import json
import os
import time

import msgspec

from bench.accounting import Memory, cpu_ms, machine, memory, others_share
from bench.client import Load, LoadError, LoadResult, run_load
from bench.figures import TREE, Round

MESSAGES = [
    {"role": "system", "content": "You answer in short sentences."},
    {"role": "user", "content": "What is the time where the sun rises first, and who is up to see it?"},
]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how hard each load is; the whole run stays under three minutes."""

    rounds: int = 3
    warm_s: float = 2
    connections: int = 64
    saturated_s: float = 4
    floor_s: float = 2
    rate: float = 50
    paced_s: float = 6
    streams: int = 50
    stream_length_s: float = 1
    """How long one stream takes by itself: 100 chunks, 10 ms apart."""
    streamed_s: float = 4


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server that answers chat calls. `processes` are names by pid; what is below a process belongs to it."""

    name: str
    port: int
    processes: dict[int, str]
    chat_model: str
    stream_model: str = ""
    api_key: str = ""

    def chat(self, connections: int, rate: float, seconds: float) -> Load:
        """Describe a load of whole answers."""
        body = json.dumps({"model": self.chat_model, "messages": MESSAGES, "max_tokens": 64})
        return Load(
            port=self.port,
            api_key=self.api_key,
            body=body.encode(),
            connections=connections,
            rate=rate,
            seconds=seconds,
        )

    def stream(self, connections: int, seconds: float, *, rate: float = 0, most: int = -1) -> Load:
        """Describe a load of streams of 100 chunks, 10 ms apart; `rate` of them begin a second where that is not 0."""
        body = json.dumps({"model": self.stream_model, "messages": MESSAGES, "max_tokens": 100, "stream": True})
        return Load(
            port=self.port,
            api_key=self.api_key,
            body=body.encode(),
            connections=connections,
            rate=rate,
            seconds=seconds,
            most=most,
            stream=True,
        )

    def round(self, load: Load) -> Round:
        """Put one load on the server, and say what its processes spent on it."""
        before, own_before, all_before = cpu_ms(self.processes), sum(os.times()[:4]), machine()
        result = run_load(load)
        after, own_after, all_after = cpu_ms(self.processes), sum(os.times()[:4]), machine()
        spent = {name: after[name] - before[name] for name in after}
        tree_ms = sum(spent.values())
        known_ms = tree_ms + (own_after - own_before) * 1000
        others = others_share(all_before, all_after, known_ms)
        return Round(load=result, cpu_ms={**spent, TREE: tree_ms}, others_share=others)

    def memory(self, *names: str) -> Memory:
        """Give the memory of the processes of these names; of all of them without names."""
        return memory({pid: name for pid, name in self.processes.items() if not names or name in names})

    def chunks_per_stream(self) -> int:
        """Count the chunks of one stream by itself. Raises LoadError when it is not a whole one."""
        one = run_load(self.stream(connections=1, seconds=20, most=1))
        if one.failures or one.streams != 1 or one.events < 100:
            raise LoadError(f"{self.name}: a single stream has {one.events} chunks: {one.first_error}")
        return one.events

    def warm(self, seconds: float, connections: int) -> LoadResult:
        """Load the server for its caches' sake. Raises LoadError when it does not answer as it should."""
        result = run_load(self.chat(connections, 0, seconds))
        if result.failures:
            raise LoadError(f"{self.name}: {result.failures} of {result.sent} calls failed: {result.first_error}")
        time.sleep(0.2)
        return result
