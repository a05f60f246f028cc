"""What the tiny pipelines of diffusers share: tokenizer, text encoders, and how all is written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import CLIPTextConfig, CLIPTextModel, PreTrainedTokenizerFast, T5Config, T5EncoderModel
from transformers.utils import logging

from workers.tiny.tokenizer import build_tokenizer
from workers.tiny.vocabulary import BEGIN, END, TURN

TEXT_WIDTH = 32
TEXT_TOKENS = 64
"""The longest prompt; the rest is cut off."""


def write_pipeline(folder: Path, seed: int, build: Callable[[], Any]) -> None:
    """Draw the weights of a pipeline from a seed of its own and write them as safetensors."""
    logging.disable_progress_bar()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        pipeline = build()
    pipeline.save_pretrained(folder, safe_serialization=True)


def tokenizer() -> Any:
    """Make the tokenizer of all tiny models, without its chat template."""
    return PreTrainedTokenizerFast(
        tokenizer_object=build_tokenizer(),
        bos_token=TURN,
        eos_token=END,
        pad_token=BEGIN,
        model_max_length=TEXT_TOKENS,
        clean_up_tokenization_spaces=False,
    )


def clip_text(vocabulary: int) -> Any:
    """Draw the text encoder of Stable Diffusion."""
    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=vocabulary,
            hidden_size=TEXT_WIDTH,
            intermediate_size=2 * TEXT_WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=TEXT_TOKENS,
            projection_dim=TEXT_WIDTH,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def t5_text(vocabulary: int) -> Any:
    """Draw the text encoder of the video models."""
    return T5EncoderModel(
        T5Config(
            vocab_size=vocabulary,
            d_model=TEXT_WIDTH,
            d_ff=2 * TEXT_WIDTH,
            d_kv=8,
            num_layers=2,
            num_heads=4,
            pad_token_id=0,
            eos_token_id=2,
        )
    )
