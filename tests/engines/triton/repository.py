"""Writes the model repository of the test server: the folders that Triton reads."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

MODELS = Path(__file__).parent / "models"

Rows = Sequence[tuple[str, str, str]]
"""Tensors: name, type, dimensions. A name with a question mark is optional."""

ENSEMBLE_INPUTS: Rows = (
    ("text_input", "STRING", "1"),
    ("max_tokens", "INT32", "1"),
    ("bad_words?", "STRING", "-1"),
    ("stop_words?", "STRING", "-1"),
    ("exclude_input_in_output?", "BOOL", "1"),
    ("end_id?", "INT32", "1"),
    ("top_k?", "INT32", "1"),
    ("top_p?", "FP32", "1"),
    ("temperature?", "FP32", "1"),
    ("repetition_penalty?", "FP32", "1"),
    ("min_tokens?", "INT32", "1"),
    ("presence_penalty?", "FP32", "1"),
    ("frequency_penalty?", "FP32", "1"),
    ("seed?", "UINT64", "1"),
    ("return_num_input_tokens?", "BOOL", "1"),
    ("return_num_output_tokens?", "BOOL", "1"),
    ("stream?", "BOOL", "1"),
)
ENSEMBLE_OUTPUTS: Rows = (
    ("text_output", "STRING", "-1"),
    ("cum_log_probs", "FP32", "-1"),
    ("sequence_index", "INT32", "1"),
    ("num_input_tokens", "INT32", "1"),
    ("num_output_tokens", "INT32", "1"),
)
OLD_INPUTS: Rows = (
    ("text_input", "STRING", "-1"),
    ("max_tokens", "INT32", "-1"),
    ("stop_words?", "STRING", "-1"),
    ("top_k?", "INT32", "1"),
    ("temperature?", "FP32", "1"),
    ("random_seed?", "UINT64", "1"),
    ("stream?", "BOOL", "1"),
)
"""As in the releases of 2023: no batch, no counts, and the seed by another name."""
PAINTER_INPUTS: Rows = (
    ("PROMPT", "STRING", "1"),
    ("NEGATIVE?", "STRING", "1"),
    ("WIDTH", "INT32", "1"),
    ("HEIGHT", "INT32", "1"),
    ("STEPS", "INT32", "1"),
    ("SEED", "INT64", "1"),
)
PAINTER_OUTPUTS: Rows = (
    ("IMAGE", "UINT8", "-1, -1, 3"),
    ("PLANES", "FP32", "3, -1, -1"),
    ("STEPS_RUN", "INT32", "1"),
)


def write_repository(folder: Path, diary: Path) -> list[str]:
    """Write all models; answers their names."""
    quick, slow = {"delay_s": "0", "diary": str(diary)}, {"delay_s": "0.02", "diary": str(diary)}
    text, new = "ensemble", (ENSEMBLE_INPUTS, ENSEMBLE_OUTPUTS)
    ids: Rows = (("input_ids", "INT64", "-1"), ("attention_mask", "INT64", "-1"))
    _write(folder / "ensemble", text, *new, max_batch=4, streams=True, parameters=quick)
    _write(folder / "slow", text, *new, max_batch=4, streams=True, parameters=slow)
    _write(folder / "old", text, OLD_INPUTS, ENSEMBLE_OUTPUTS[:1], streams=True, parameters=quick)
    _write(folder / "whole", text, *new, max_batch=4, parameters=quick)
    _write(folder / "left_alone", text, *new, max_batch=4, parameters=quick)
    _write(
        folder / "embed_text",
        "embed_text",
        (("TEXT", "STRING", "1"),),
        (("VECTOR", "FP32", "8"), ("TOKENS", "INT32", "1")),
        max_batch=4,
    )
    _write(folder / "embed_tokens", "embed_tokens", ids, (("last_hidden_state", "FP32", "-1, 3"),), max_batch=4)
    _write(folder / "painter", "painter", PAINTER_INPUTS, PAINTER_OUTPUTS, parameters={"diary": str(diary)})
    return sorted(each.name for each in folder.iterdir())


def _write(
    folder: Path,
    source: str,
    inputs: Rows,
    outputs: Rows,
    *,
    max_batch: int = 0,
    streams: bool = False,
    parameters: Mapping[str, str] | None = None,
) -> None:
    (folder / "1").mkdir(parents=True)
    shutil.copy(MODELS / f"{source}.py", folder / "1" / "model.py")
    lines = ['backend: "python"', f"max_batch_size: {max_batch}"]
    lines += [_tensor("input", *row) for row in inputs] + [_tensor("output", *row) for row in outputs]
    if streams:
        lines.append("model_transaction_policy { decoupled: true }")
    for key, value in (parameters or {}).items():
        lines.append(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}')
    (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")


def _tensor(side: str, name: str, kind: str, dims: str) -> str:
    optional = " optional: true" if name.endswith("?") else ""
    return f'{side} {{ name: "{name.rstrip("?")}" data_type: TYPE_{kind} dims: [ {dims} ]{optional} }}'
