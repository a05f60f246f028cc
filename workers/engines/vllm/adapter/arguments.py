"""What vLLM is started with."""

from typing import Any

from vllm.engine.arg_utils import AsyncEngineArgs

from workers.engines.vllm.options import SpeculativeOptions
from workers.engines.vllm.serving import Serving
from workers.engines.vllm.tether import Tether


def arguments_of(serving: Serving) -> Any:
    """Make vLLM's arguments. What is None is left to vLLM."""
    options, adapters = serving.options, serving.adapters
    given: dict[str, Any] = {
        "max_num_batched_tokens": options.max_num_batched_tokens,
        "kv_cache_memory_bytes": options.kv_cache_memory_bytes,
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "enable_prefix_caching": options.enable_prefix_caching,
        "enable_chunked_prefill": options.enable_chunked_prefill,
        "cpu_offload_gb": options.cpu_offload_gb,
        "max_model_len": options.max_model_len,
        "quantization": options.quantization,
        "block_size": options.block_size,
        "revision": options.revision,
        "speculative_config": _speculation(options.speculative, serving.draft),
    }
    if adapters:
        given |= {
            "enable_lora": True,
            "max_loras": options.max_loras or min(len(adapters), 8),
            "max_cpu_loras": max(len(adapters), options.max_loras or 0),
            "max_lora_rank": max(each.rank for each in adapters.values()),
        }
    return AsyncEngineArgs(
        model=serving.source.where,
        served_model_name=serving.name,
        dtype=options.dtype,
        kv_cache_dtype=options.kv_cache_dtype,
        max_num_seqs=options.max_num_seqs,
        enforce_eager=options.enforce_eager,
        tensor_parallel_size=options.tensor_parallel_size,
        pipeline_parallel_size=options.pipeline_parallel_size,
        runner=serving.runner,
        convert=serving.convert,
        # `auto` would take pickled weights where there are no others.
        load_format="safetensors" if options.load_format == "auto" else options.load_format,
        seed=options.seed,
        trust_remote_code=False,
        # Of the libraries, llguidance alone bounds the work of a step: with xgrammar 0.2, a pattern such as
        # (a*)*(a*)* takes over a second for each token after 50, which stops every request of the engine.
        structured_outputs_config={"backend": "guidance", "disable_any_whitespace": True},
        additional_config=Tether(),
        use_tqdm_on_load=False,
        enable_log_requests=False,
        disable_log_stats=True,
        **{field: value for field, value in given.items() if value is not None},
    )


def _speculation(options: SpeculativeOptions | None, draft: str) -> dict[str, Any] | None:
    if options is None:
        return None
    given = {
        "method": options.method,
        "model": draft or None,
        "num_speculative_tokens": options.num_speculative_tokens,
        "prompt_lookup_min": options.prompt_lookup_min,
        "prompt_lookup_max": options.prompt_lookup_max,
        "draft_tensor_parallel_size": options.draft_tensor_parallel_size,
    }
    return {field: value for field, value in given.items() if value is not None}
