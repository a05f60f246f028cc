"""What a family of models is to the engine."""

from pathlib import Path
from typing import Protocol

import msgspec

from gateway.contract.events import Output
from gateway.contract.inputs import Input
from gateway.contract.pools import ServedModel
from gateway.contract.tasks import Task
from workers.engines.speech.job import Job
from workers.engines.speech.options import Source, SpeechOptions


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a family needs to load a model; `source` is None where the engine is the model."""

    model: ServedModel
    options: SpeechOptions
    source: Source | None
    models_dir: Path


class SoundLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a sound that comes with a request must keep to."""

    least_s: float
    most_s: float
    silence: bool
    """Whether a sound in which nothing can be heard is taken."""


class Loaded(Protocol):
    """A model in memory."""

    @property
    def tasks(self) -> frozenset[Task]:
        """What it does."""
        ...

    @property
    def limits(self) -> SoundLimits | None:
        """The limits of the sound that it takes; None where it takes none."""
        ...

    def check(self, given: Input) -> None:
        """Look at an input before any work. Raises RefusedInput, which names the field."""
        ...

    def work(self, job: Job) -> Output:
        """Execute a request in the engine's thread; blocks. Raises RefusedInput, EngineError or Stopped."""
        ...
