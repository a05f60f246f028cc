"""LoRA adapters of random weights for the tiny Llama."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

HIDDEN, LAYERS, RANK = 128, 2, 4


def write_adapter(folder: Path, seed: int, *, hidden: int = HIDDEN) -> Path:
    """Write an adapter that changes the queries of each layer, so much that answers change."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    tensors = {}
    for layer in range(LAYERS):
        name = f"base_model.model.model.layers.{layer}.self_attn.o_proj"
        tensors[f"{name}.lora_A.weight"] = random.standard_normal((RANK, hidden), dtype=np.float32)
        tensors[f"{name}.lora_B.weight"] = random.standard_normal((hidden, RANK), dtype=np.float32)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 8, "target_modules": ["o_proj"], "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder
