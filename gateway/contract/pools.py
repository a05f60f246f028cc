"""What a pool serves, told to its workers, and how its workers stand, told to gateways."""

from typing import Any, Literal

import msgspec

from gateway.contract.tasks import Task

EngineName = Literal["vllm", "speech", "fake", "diffusers", "triton", "workflow", "upstream"]
"""What executes a request."""

LoadState = Literal["loading", "ready", "failed", "on_demand", "unset"]
"""`on_demand`: not in memory now, and loaded when a request comes for it. `unset`: no upstream of it has a key."""

ProtocolName = Literal["openai", "gmi", "fal", "replicate", "elevenlabs", "minimax", "kling"]
"""How an upstream is spoken to."""


class UpstreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that serves models elsewhere. Its key is a setting of the workers, and not in the catalog."""

    name: str
    protocol: ProtocolName
    url: str
    """Where its API begins, without a slash at the end."""
    timeout_s: int = 60
    """For one answer, or between two pieces of a stream; of a job, for each look at it."""
    concurrency: int = 256
    """The most calls and jobs that a worker has open there."""

    @property
    def key_setting(self) -> str:
        """The name of the setting that holds its key."""
        return upstream_setting(self.name, "KEY")


def upstream_setting(upstream: str, what: str) -> str:
    """Name a setting of an upstream: `KEY`, or `URL`, which overrides the catalog's."""
    return f"FAREGATE_UPSTREAM_{upstream.upper().replace('-', '_')}_{what}"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A model as an upstream knows it."""

    upstream: str
    model: str
    """Its name there."""
    order: int = 0
    weight: int = 1
    fields: dict[str, str] = {}
    """How fields of the input are called there, and in which form: `NAME` or `NAME as FORM`. See `docs/reference`."""
    fixed: dict[str, Any] = {}
    """What is sent with each call."""


class ServedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model as a worker must load it."""

    name: str
    tasks: list[Task]
    source: str = ""
    """A Hugging Face repository, a local folder, or `tiny:NAME` for a model made from code.

    Empty where the engine is the model.
    """
    options: dict[str, Any] = {}
    """Options of the engine, passed by its allow-list."""
    targets: list[Target] = []
    """Where it is served by upstreams of this pool."""


class PoolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What the workers of a pool are to run. Published in Redis by the gateways, read by workers as they start."""

    pool: str
    engine: EngineName
    models: list[ServedModel]
    lease_ms: int = 10_000
    attempts: int = 3
    upstreams: list[UpstreamSpec] = []


class ModelState(msgspec.Struct, frozen=True, kw_only=True):
    """How a model stands on one worker."""

    state: LoadState
    detail: str = ""
    context_tokens: int = 0


class UpstreamState(msgspec.Struct, frozen=True, kw_only=True):
    """How an upstream stands, as one worker has seen it in its own traffic."""

    state: Literal["closed", "open", "half_open", "unset"]
    """Of its circuit breaker; `unset` while it has no key."""
    detail: str = ""
    error_rate: float = 0.0
    """Of recent attempts, from 0 to 1."""
    latency_ms: int = 0
    """The median of recent attempts that succeeded."""


class WorkerTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has done with its time so far; the rest of it was idle."""

    up_ms: int = 0
    load_ms: int = 0
    """Until its models were loaded."""
    busy_ms: int = 0
    """In which it ran one request or more."""


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's word about itself, with each heartbeat."""

    worker: str
    pool: str
    engine: EngineName
    pid: int
    version: str
    models: dict[str, ModelState]
    capacity: int
    running: int
    memory_bytes: int
    draining: bool = False
    """Whether it takes no more: it is about to end, or an operator says so."""
    upstreams: dict[str, UpstreamState] = {}
    times: WorkerTimes = WorkerTimes()


_ENCODER = msgspec.msgpack.Encoder()
_SPEC = msgspec.msgpack.Decoder(PoolSpec)
_STATUS = msgspec.msgpack.Decoder(WorkerStatus)


def encode_spec(spec: PoolSpec) -> bytes:
    """Encode a pool's specification."""
    return _ENCODER.encode(spec)


def decode_spec(data: bytes) -> PoolSpec:
    """Decode a pool's specification."""
    return _SPEC.decode(data)


def encode_status(status: WorkerStatus) -> bytes:
    """Encode a worker's status."""
    return _ENCODER.encode(status)


def decode_status(data: bytes) -> WorkerStatus:
    """Decode a worker's status."""
    return _STATUS.decode(data)
