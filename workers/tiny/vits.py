"""A tiny VITS of one speaker and of letters."""

import json
from pathlib import Path

from workers.tiny.models import TinyModel
from workers.tiny.torch_weights import describe, seeded

LETTERS = "_ abcdefghijklmnopqrstuvwxyz0123456789'-"
"""What it can read; `_` stands between any two. Punctuation is left out, as MMS leaves it."""
LOG_FRAMES = 1.38
"""How long each letter and each gap lasts, as the logarithm of a number of frames of 16 ms: nearly 4."""


def write_vits(folder: Path, model: TinyModel) -> None:
    """Write the model and its tokenizer."""
    from transformers import VitsConfig, VitsModel, VitsTokenizer

    vocabulary = folder / "vocab.json"
    vocabulary.write_text(json.dumps({letter: at for at, letter in enumerate(LETTERS)}))
    tokenizer = VitsTokenizer(
        str(vocabulary), pad_token="_", unk_token="_", language="eng", add_blank=True, normalize=True, phonemize=False
    )
    tokenizer.save_pretrained(folder)
    config = VitsConfig(
        vocab_size=len(LETTERS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=64,
        flow_size=32,
        spectrogram_bins=33,
        upsample_initial_channel=32,
        upsample_rates=[8, 8, 4],
        upsample_kernel_sizes=[16, 16, 8],
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 3]],
        prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=1,
        posterior_encoder_num_wavenet_layers=1,
        use_stochastic_duration_prediction=False,
        duration_predictor_filter_channels=32,
        sampling_rate=16_000,
    )
    with seeded(model.seed) as torch:
        vits = VitsModel(config)
        with torch.no_grad():
            vits.duration_predictor.proj.weight.zero_()
            vits.duration_predictor.proj.bias.fill_(LOG_FRAMES)
            vits.decoder.conv_post.weight.mul_(0.1)  # else it is as loud as can be
    vits.save_pretrained(folder, safe_serialization=True)
    describe(folder, model)
