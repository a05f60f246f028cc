"""Loads a pipeline. Imports torch and diffusers: used in torch's thread only."""

import gc
import logging
from typing import Any

import diffusers
import torch
from diffusers.quantizers.pipe_quant_config import PipelineQuantizationConfig
from diffusers.utils import logging as diffusers_logging
from transformers.utils import logging as transformers_logging

from workers.engines.diffusers.options import BadModel, DiffusersOptions, Entry

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def silence() -> None:
    """Keep the libraries' progress bars and warnings, which may quote a prompt, out of the worker's log."""
    diffusers_logging.set_verbosity_error()
    diffusers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("httpx").setLevel(logging.WARNING)


def load_pipeline(entry: Entry) -> Any:
    """Load a model's own pipeline, from safetensors alone. Raises one of `gallery.LOAD_ERRORS`."""
    silence()
    options, source = entry.options, entry.source
    device, dtype = device_of(options), dtype_of(options)
    given: dict[str, Any] = {"revision": options.revision, "variant": options.variant}
    if options.quantization == "int8":
        given["quantization_config"] = _int8()
    pipeline = diffusers.DiffusionPipeline.from_pretrained(
        source.where,
        dtype=dtype,
        use_safetensors=True,
        trust_remote_code=False,
        local_files_only=source.local,
        **{name: value for name, value in given.items() if value is not None},
    )
    if options.quantization == "float8":
        _store_in_float8(pipeline, dtype)
    if options.vae_tiling:
        pipeline.vae.enable_tiling()
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(device)


def device_of(options: DiffusersOptions) -> str:
    """Say where a model runs: on a GPU if there is one and nothing else is said."""
    if options.device != "auto":
        return options.device
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype_of(options: DiffusersOptions) -> torch.dtype:
    """Say in which precision a model runs."""
    if options.dtype == "auto":
        return torch.float32 if device_of(options) == "cpu" else torch.bfloat16
    return DTYPES[options.dtype]


def _int8() -> Any:
    """Keep the weights of the denoiser's linear layers as whole numbers of 8 bits."""
    from torchao.quantization import Int8WeightOnlyConfig

    how = diffusers.TorchAoConfig(Int8WeightOnlyConfig())
    return PipelineQuantizationConfig(quant_mapping={"transformer": how, "unet": how})


def _store_in_float8(pipeline: Any, dtype: torch.dtype) -> None:
    """Keep the weights of the denoiser in 8 bits; each layer computes in the usual precision."""
    denoiser = getattr(pipeline, "transformer", None) or getattr(pipeline, "unet", None)
    if denoiser is None:
        raise BadModel("quantization: float8 is for pipelines with a transformer or a unet")
    denoiser.enable_layerwise_casting(storage_dtype=torch.float8_e4m3fn, compute_dtype=dtype)


def weight_bytes(pipeline: Any) -> int:
    """Count the bytes of a pipeline's weights."""
    modules = [part for part in pipeline.components.values() if isinstance(part, torch.nn.Module)]
    tensors = {id(each): each for part in modules for each in (*part.parameters(), *part.buffers())}
    return sum(_bytes_of(tensor) for tensor in tensors.values())


def _bytes_of(tensor: Any) -> int:
    """Count the bytes of a tensor; a quantised one says how large it would be, and consists of others."""
    if hasattr(tensor, "__tensor_flatten__"):
        return sum(_bytes_of(getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0])
    return int(tensor.numel() * tensor.element_size())


def free() -> None:
    """Give back the memory of what has just been dropped."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
