"""What the families on torch share: how weights are read, where they lie, and how a forward pass is stopped.

Only safetensors are read, and no code of a repository is ever run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers.utils import logging

from gateway.contract.inputs import Input
from workers.engine import EngineError, EngineLost
from workers.engines.speech.family import Place
from workers.engines.speech.job import Job
from workers.engines.speech.options import BadModel, Source, SpeechOptions

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class Brake:
    """Stops a forward pass between two of its blocks: a hook before each of them looks whether to go on."""

    def __init__(self, *models: nn.Module) -> None:
        self._job: Job | None = None
        for model in models:
            for module in model.modules():
                if next(module.children(), None) is not None:
                    module.register_forward_pre_hook(self._look)

    @contextmanager
    def forward(self, job: Job, seed: int | None = None) -> Iterator[None]:
        """Run the block as the forward phase of a request, from a seed where one is given.

        Raises Stopped, EngineError where the memory is too small, EngineLost where the device is gone.
        """
        if seed is not None:
            torch.manual_seed(seed)
        self._job = job
        try:
            with job.phase("forward"), torch.inference_mode():
                yield
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            raise EngineError("The memory of the machine does not suffice for this request.") from None
        except torch.AcceleratorError as error:
            raise EngineLost(str(error)) from error
        finally:
            self._job = None

    def _look(self, module: nn.Module, given: object) -> None:
        if self._job is not None:
            self._job.check()


def prepare(options: SpeechOptions, source: Source) -> None:
    """Set torch and transformers up. A tiny model is slower on more than one thread."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    threads = options.threads or (1 if source.tiny else None)
    if threads is not None:
        torch.set_num_threads(threads)


def device_of(options: SpeechOptions) -> torch.device:
    """Find the device. Raises BadModel where it is none."""
    if options.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(options.device)
    except RuntimeError:
        raise BadModel(f"device {options.device!r} is none; say auto, cpu, cuda or cuda:1") from None


def sourced(place: Place) -> Source:
    """Give the source of a model that has one. Raises BadModel."""
    if place.source is None:
        raise BadModel("this family needs a source")
    return place.source


def read(kind: Any, source: Source, options: SpeechOptions) -> Any:
    """Read a tokenizer, a feature extractor or a configuration."""
    return kind.from_pretrained(
        source.where, local_files_only=source.local, revision=options.revision, trust_remote_code=False
    )


def read_weights(kind: Any, source: Source, options: SpeechOptions, *, dtype: str | None = None) -> Any:
    """Read a model's weights onto its device, ready to be run. Raises OSError where there are no safetensors."""
    model = kind.from_pretrained(
        source.where,
        local_files_only=source.local,
        revision=options.revision,
        use_safetensors=True,
        trust_remote_code=False,
        dtype=_DTYPES[dtype or options.dtype],
    )
    return model.eval().to(device_of(options))


def seed_of(given: Input) -> int:
    """Give the seed of an input; one drawn by chance where the caller gave none."""
    asked: int | None = getattr(given, "seed", None)
    return int(torch.randint(0, 2**53, ()).item()) if asked is None else asked
