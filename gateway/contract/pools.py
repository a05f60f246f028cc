"""What a pool serves, told to its workers, and how its workers stand, told to gateways."""

from typing import Any, Literal

import msgspec

from gateway.contract.tasks import Task

EngineName = Literal["vllm", "speech", "fake"]
"""What executes a request."""

LoadState = Literal["loading", "ready", "failed"]


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


class PoolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What the workers of a pool are to run. Published in Redis by the gateways, read by workers as they start."""

    pool: str
    engine: EngineName
    models: list[ServedModel]
    lease_ms: int = 10_000
    attempts: int = 3


class ModelState(msgspec.Struct, frozen=True, kw_only=True):
    """How a model stands on one worker."""

    state: LoadState
    detail: str = ""
    context_tokens: int = 0


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
