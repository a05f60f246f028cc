"""One run of the load client, and what it counted."""

import subprocess
import tempfile

import msgspec

from bench.build import build_client


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """A load: closed loop over `connections`, or at `rate` requests a second where that is not 0."""

    port: int
    path: str = "/v1/chat/completions"
    body: bytes
    api_key: str = ""
    connections: int
    rate: float = 0
    seconds: float
    most: int = -1
    """The most requests that are sent; -1 sets no limit."""
    grace_s: float = 20
    """Seconds granted to what is unanswered at the end."""
    stream: bool = False
    marker: str = '"content":'
    """What the data line of an event must hold to be counted."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of one measured quantity."""

    p50: float
    p90: float
    p99: float
    max: float


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the load client counted. Latencies are of answers with status 200 only."""

    sent: int
    answered: int
    seconds: float
    bad_status: int
    cut: int
    """Connections that closed before their answer was complete."""
    unfinished: int
    reconnects: int
    streams: int
    incomplete_streams: int
    """Streams whose body ended, and that had not said [DONE]."""
    events: int
    fewest_events: int
    most_events: int
    latency_ms: Spread
    first_event_ms: Spread
    first_error: str

    @property
    def failures(self) -> int:
        """How many requests did not end as they should."""
        return self.bad_status + self.cut + self.unfinished + self.incomplete_streams

    @property
    def per_second(self) -> float:
        """Answers of status 200 a second."""
        return (self.answered - self.bad_status) / self.seconds


class LoadError(RuntimeError):
    """The load client could not do its work: nobody listens, or an answer is not HTTP."""


def run_load(load: Load) -> LoadResult:
    """Run one load to its end. Raises LoadError."""
    with tempfile.NamedTemporaryFile() as body:
        body.write(load.body)
        body.flush()
        done = subprocess.run(_command(load, body.name), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LoadError(done.stderr.strip() or f"the load client ended with {done.returncode}")
    return msgspec.json.decode(done.stdout, type=LoadResult)


def _command(load: Load, body_file: str) -> list[str]:
    words = [str(build_client()), "--port", str(load.port), "--path", load.path, "--body", body_file]
    words += ["--connections", str(load.connections), "--rate", str(load.rate), "--seconds", str(load.seconds)]
    words += ["--most", str(load.most), "--grace", str(load.grace_s)]
    if load.api_key:
        words += ["--header", f"Authorization: Bearer {load.api_key}"]
    if load.stream:
        words += ["--stream", "--marker", load.marker]
    return words
