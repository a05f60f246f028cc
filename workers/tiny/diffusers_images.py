"""The tiny pipelines that make images: Stable Diffusion, InstructPix2Pix, and the upscaler by four.

Their shapes are those of the real ones, a thousand times smaller: the same classes load and run both.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMScheduler,
    StableDiffusionInstructPix2PixPipeline,
    StableDiffusionPipeline,
    StableDiffusionUpscalePipeline,
    UNet2DConditionModel,
)

from workers.tiny.diffusers_parts import TEXT_WIDTH, clip_text, tokenizer, write_pipeline
from workers.tiny.models import TinyModel

NO_CHECKER: dict[str, Any] = {"safety_checker": None, "feature_extractor": None}
BETAS: dict[str, Any] = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}


def write_stable_diffusion(folder: Path, model: TinyModel) -> None:
    """Write a Stable Diffusion: pictures from text, from pictures, and inside of masks."""
    write_pipeline(folder, model.seed, lambda: _stable_diffusion(StableDiffusionPipeline, channels=4))


def write_pix2pix(folder: Path, model: TinyModel) -> None:
    """Write an InstructPix2Pix: pictures changed as they are told to be."""
    write_pipeline(folder, model.seed, lambda: _stable_diffusion(StableDiffusionInstructPix2PixPipeline, channels=8))


def write_upscaler(folder: Path, model: TinyModel) -> None:
    """Write an upscaler by four."""
    write_pipeline(folder, model.seed, _upscaler)


def _stable_diffusion(kind: type[Any], channels: int) -> Any:
    words = tokenizer()
    return kind(
        vae=_autoencoder((8, 16, 32, 32)),
        text_encoder=clip_text(len(words)),
        tokenizer=words,
        unet=_unet(channels, (32, 64)),
        scheduler=_scheduler(),
        requires_safety_checker=False,
        **NO_CHECKER,
    )


def _upscaler() -> Any:
    words = tokenizer()
    return StableDiffusionUpscalePipeline(
        vae=_autoencoder((8, 16, 32), 0.08333),
        text_encoder=clip_text(len(words)),
        tokenizer=words,
        unet=_unet(7, (16, 32), num_class_embeds=1000),
        low_res_scheduler=DDPMScheduler(**BETAS),
        scheduler=_scheduler(),
        max_noise_level=350,
        **NO_CHECKER,
    )


def _unet(channels: int, widths: tuple[int, int], **more: Any) -> Any:
    return UNet2DConditionModel(
        sample_size=32,
        in_channels=channels,
        out_channels=4,
        layers_per_block=1,
        block_out_channels=widths,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=TEXT_WIDTH,
        attention_head_dim=8,
        norm_num_groups=16,
        **more,
    )


def _autoencoder(widths: Sequence[int], scaling: float = 0.18215) -> Any:
    return AutoencoderKL(
        in_channels=3,
        out_channels=3,
        latent_channels=4,
        layers_per_block=1,
        block_out_channels=tuple(widths),
        down_block_types=("DownEncoderBlock2D",) * len(widths),
        up_block_types=("UpDecoderBlock2D",) * len(widths),
        norm_num_groups=8,
        sample_size=256,
        scaling_factor=scaling,
    )


def _scheduler() -> Any:
    return DDIMScheduler(clip_sample=False, set_alpha_to_one=False, steps_offset=1, **BETAS)
