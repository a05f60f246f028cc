"""The families of models, one file each, and which of them serves a model."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from gateway.contract.pools import ServedModel
from workers.engines.speech.family import Loaded, Place
from workers.engines.speech.options import BadModel, FamilyName, Source, options_of, source_of
from workers.tiny.models import UnknownTinyModel, make_tiny

FAMILIES: dict[FamilyName, str] = {
    "espeak": "workers.engines.speech.espeak:load",
    "vits": "workers.engines.speech.vits:load",
    "speecht5": "workers.engines.speech.speecht5:load",
    "waveform": "workers.engines.speech.waveform:load",
    "musicgen": "workers.engines.speech.musicgen:load",
    "whisper": "workers.engines.speech.whisper:load",
}
"""Where each family is loaded. All but espeak-ng need torch and transformers, which are imported only then."""

MODEL_TYPES: dict[str, FamilyName] = {
    "vits": "vits",
    "speecht5": "speecht5",
    "musicgen": "musicgen",
    "whisper": "whisper",
}
"""The `model_type` of config.json for which there is a family of its own; any other is tried as `waveform`."""


def load_model(model: ServedModel, models_dir: Path) -> Loaded:
    """Load a model by its family; blocks. Raises BadModel, OSError, ValueError, RuntimeError or ImportError."""
    options = options_of(model)
    source = source_of(model.source, models_dir) if model.source else None
    if source is not None and source.tiny:
        try:
            make_tiny(models_dir, [source.tiny])
        except UnknownTinyModel as error:
            raise BadModel(str(error)) from None
    family = options.family or family_of(source, options.revision)
    if source is None and family != "espeak":
        raise BadModel(f"family {family} needs a source")
    module, _, name = FAMILIES[family].partition(":")
    load = cast(Callable[[Place], Loaded], getattr(import_module(module), name))
    loaded = load(Place(model=model, options=options, source=source, models_dir=models_dir))
    undone = [task for task in model.tasks if task not in loaded.tasks]
    if undone:
        raise BadModel(f"a model of the family {family} does no {', '.join(undone)}, as this one is set up")
    return loaded


def family_of(source: Source | None, revision: str | None) -> FamilyName:
    """Find the family of a model from its `model_type`. Raises BadModel, OSError or ImportError."""
    if source is None:
        return "espeak"
    if source.local:
        try:
            kind = str(json.loads((Path(source.where) / "config.json").read_bytes()).get("model_type"))
        except json.JSONDecodeError:
            raise BadModel("its config.json is no JSON") from None
    else:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(source.where, revision=revision, trust_remote_code=False)
        kind = str(config.model_type)
    return MODEL_TYPES.get(kind, "waveform")
