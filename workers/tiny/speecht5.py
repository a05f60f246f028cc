"""A tiny SpeechT5 with what it needs beside it: a HiFi-GAN in `vocoder`, a WavLM for x-vectors in `speaker`."""

from pathlib import Path

from workers.tiny.models import TinyModel
from workers.tiny.tokenizer import build_tokenizer, write_tokenizer
from workers.tiny.torch_weights import describe, seeded

SPEAKER = 32
"""The length of a speaker's vector."""
MELS = 80
STOP_BIAS = -2.8
"""So that a sound ends on its own, and is not cut off."""


def write_speecht5(folder: Path, model: TinyModel) -> None:
    """Write all three."""
    from transformers import SpeechT5Config, SpeechT5ForTextToSpeech

    tokenizer = build_tokenizer()
    write_tokenizer(tokenizer, folder, 600)
    config = SpeechT5Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_layers=2,
        decoder_attention_heads=2,
        decoder_ffn_dim=64,
        num_mel_bins=MELS,
        speaker_embedding_dim=SPEAKER,
        speech_decoder_prenet_units=32,
        speech_decoder_postnet_units=32,
        speech_decoder_postnet_layers=2,
        conv_dim=[32],
        conv_stride=[5],
        conv_kernel=[10],
        num_feat_extract_layers=1,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        max_speech_positions=4000,
        initializer_range=0.2,
    )
    with seeded(model.seed) as torch:
        speech = SpeechT5ForTextToSpeech(config)
        with torch.no_grad():
            speech.speech_decoder_postnet.prob_out.bias.fill_(STOP_BIAS)
    speech.save_pretrained(folder, safe_serialization=True)
    describe(folder, model)
    _write_vocoder(folder / "vocoder", model)
    _write_speaker(folder / "speaker", model)


def _write_vocoder(folder: Path, model: TinyModel) -> None:
    from transformers import SpeechT5HifiGan, SpeechT5HifiGanConfig

    config = SpeechT5HifiGanConfig(
        model_in_dim=MELS,
        sampling_rate=16_000,
        upsample_initial_channel=32,
        upsample_rates=[4, 4, 4, 4],
        upsample_kernel_sizes=[8, 8, 8, 8],
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 3]],
        initializer_range=0.2,
    )
    with seeded(model.seed) as torch:
        vocoder = SpeechT5HifiGan(config)
        with torch.no_grad():
            vocoder.conv_post.weight.mul_(0.1)  # else it is as loud as can be
    vocoder.save_pretrained(folder, safe_serialization=True)
    describe(folder, model)


def _write_speaker(folder: Path, model: TinyModel) -> None:
    from transformers import Wav2Vec2FeatureExtractor, WavLMConfig, WavLMForXVector

    Wav2Vec2FeatureExtractor(sampling_rate=16_000, do_normalize=True).save_pretrained(folder)
    config = WavLMConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        conv_dim=[32] * 7,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        num_buckets=32,
        tdnn_dim=[32, 32, 32, 32, 96],
        xvector_output_dim=SPEAKER,
        initializer_range=0.2,
    )
    with seeded(model.seed):
        speaker = WavLMForXVector(config)
    speaker.save_pretrained(folder, safe_serialization=True)
    describe(folder, model)
