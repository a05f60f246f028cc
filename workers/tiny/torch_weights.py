"""What the makers of models in torch share: seeds that change nothing for others, and the word that all is random."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workers.tiny.models import TinyModel


@contextmanager
def seeded(seed: int) -> Iterator[Any]:
    """Draw what torch draws in the block from a seed, and leave its generator as it was; gives torch."""
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield torch


def describe(folder: Path, model: TinyModel) -> None:
    """Say in a model's config.json that its weights are random."""
    path = folder / "config.json"
    config = json.loads(path.read_bytes()) | {"description": model.description, "weights": "random"}
    path.write_text(json.dumps(config, indent=2) + "\n")
