"""The engines by name, one file or package each; none is imported before it is used, and none imports another."""

from importlib import import_module
from pathlib import Path
from typing import cast

from gateway.contract.pools import EngineName
from workers.engine import Engine

ENGINES: dict[EngineName, str] = {
    "diffusers": "workers.engines.diffusers.engine:DiffusersEngine",
    "fake": "workers.engines.fake.engine:FakeEngine",
    "speech": "workers.engines.speech.engine:SpeechEngine",
    "triton": "workers.engines.triton.engine:TritonEngine",
    "upstream": "workers.engines.upstream.engine:UpstreamEngine",
    "workflow": "workers.engines.workflow.engine:WorkflowEngine",
    "vllm": "workers.engines.vllm.engine:VllmEngine",
}
"""Where the class of each engine lies."""


def make_engine(name: EngineName, models_dir: Path) -> Engine:
    """Import an engine and make it. Raises ImportError where its packages are not installed."""
    module, _, kind = ENGINES[name].partition(":")
    return cast(Engine, getattr(import_module(module), kind)(models_dir))
