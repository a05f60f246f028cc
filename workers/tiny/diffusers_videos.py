"""The tiny pipelines that make video: Wan from text, LTX from text or from a first picture."""

from pathlib import Path
from typing import Any

from diffusers import (
    AutoencoderKLLTXVideo,
    AutoencoderKLWan,
    FlowMatchEulerDiscreteScheduler,
    LTXPipeline,
    LTXVideoTransformer3DModel,
    WanPipeline,
    WanTransformer3DModel,
)

from workers.tiny.diffusers_parts import TEXT_WIDTH, t5_text, tokenizer, write_pipeline
from workers.tiny.models import TinyModel


def write_wan(folder: Path, model: TinyModel) -> None:
    """Write a Wan: video from text."""
    write_pipeline(folder, model.seed, _wan)


def write_ltx(folder: Path, model: TinyModel) -> None:
    """Write an LTX: video from text, and from a picture."""
    write_pipeline(folder, model.seed, _ltx)


def _wan() -> Any:
    words = tokenizer()
    return WanPipeline(
        tokenizer=words,
        text_encoder=t5_text(len(words)),
        transformer=WanTransformer3DModel(
            patch_size=(1, 2, 2),
            num_attention_heads=2,
            attention_head_dim=12,
            in_channels=16,
            out_channels=16,
            text_dim=TEXT_WIDTH,
            freq_dim=64,
            ffn_dim=64,
            num_layers=2,
            cross_attn_norm=True,
            qk_norm="rms_norm_across_heads",
        ),
        vae=AutoencoderKLWan(
            base_dim=4,
            z_dim=16,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, True, True],
        ),
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
    )


def _ltx() -> Any:
    words = tokenizer()
    return LTXPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=AutoencoderKLLTXVideo(
            in_channels=3,
            out_channels=3,
            latent_channels=8,
            block_out_channels=(8, 8, 8, 8),
            decoder_block_out_channels=(8, 8, 8, 8),
            layers_per_block=(1, 1, 1, 1, 1),
            decoder_layers_per_block=(1, 1, 1, 1, 1),
            spatio_temporal_scaling=(True, True, True, False),
            decoder_spatio_temporal_scaling=(True, True, True, False),
            decoder_inject_noise=(False, False, False, False, False),
            upsample_residual=(False, False, False, False),
            upsample_factor=(1, 1, 1, 1),
            timestep_conditioning=False,
            patch_size=4,
            patch_size_t=1,
            encoder_causal=True,
            decoder_causal=False,
        ),
        text_encoder=t5_text(len(words)),
        tokenizer=words,
        transformer=LTXVideoTransformer3DModel(
            in_channels=8,
            out_channels=8,
            patch_size=1,
            patch_size_t=1,
            num_attention_heads=4,
            attention_head_dim=8,
            cross_attention_dim=TEXT_WIDTH,
            num_layers=2,
            caption_channels=TEXT_WIDTH,
        ),
    )
