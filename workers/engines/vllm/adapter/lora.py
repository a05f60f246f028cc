"""Whether an adapter fits its base model: vLLM cuts or pads one that does not, and its answers are noise."""

from pathlib import Path
from typing import Any

from safetensors import safe_open

from workers.engines.vllm.serving import Adapter

_READ_STATE = (
    "q_proj",
    "k_proj",
    "v_proj",
    "qkv_proj",
    "gate_proj",
    "up_proj",
    "gate_up_proj",
    "query",
    "key",
    "value",
)
_WRITE_STATE = ("o_proj", "down_proj")


def check_fit(adapter: Adapter, config: Any) -> None:
    """Hold the tensors of the attention and the feed-forward layers to the width of the model. Raises ValueError."""
    width = config.hidden_size
    with safe_open(Path(adapter.where) / "adapter_model.safetensors", framework="np") as tensors:
        for name in tensors.keys():  # noqa: SIM118  # not a dict
            module, _, side = name.removesuffix(".weight").rpartition(".")
            layer = module.rpartition(".")[2]
            shape = tensors.get_slice(name).get_shape()
            if (side == "lora_A" and layer in _READ_STATE and shape[1] != width) or (
                side == "lora_B" and layer in _WRITE_STATE and shape[0] != width
            ):
                raise ValueError(
                    f"the adapter was made for another model: {name} is {shape}, the model is {width} wide"
                )
