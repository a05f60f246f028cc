"""A tiny MusicGen: a T5 that reads, a decoder of two codebooks, an EnCodec that makes sound of them."""

from pathlib import Path

from workers.tiny.models import TinyModel
from workers.tiny.tokenizer import build_tokenizer, write_tokenizer
from workers.tiny.torch_weights import describe, seeded

CODES = 64


def write_musicgen(folder: Path, model: TinyModel) -> None:
    """Write the model and its tokenizer."""
    from transformers import (
        EncodecConfig,
        MusicgenConfig,
        MusicgenDecoderConfig,
        MusicgenForConditionalGeneration,
        T5Config,
    )

    tokenizer = build_tokenizer()
    write_tokenizer(tokenizer, folder, 512)
    reader = T5Config(vocab_size=tokenizer.get_vocab_size(), d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2)
    codec = EncodecConfig(
        sampling_rate=16_000,
        num_filters=4,
        hidden_size=16,
        codebook_size=CODES,
        codebook_dim=16,
        upsampling_ratios=[8, 5, 4, 2],
        num_lstm_layers=1,
        target_bandwidths=[0.6],
    )
    decoder = MusicgenDecoderConfig(
        vocab_size=CODES,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=64,
        num_codebooks=2,
        max_position_embeddings=2048,
        pad_token_id=CODES,
        bos_token_id=CODES,
    )
    parts = {"text_encoder": reader.to_dict(), "audio_encoder": codec.to_dict(), "decoder": decoder.to_dict()}
    with seeded(model.seed) as torch:
        config = MusicgenConfig(**parts)
        music = MusicgenForConditionalGeneration(config)
        with torch.no_grad():
            for layer in music.audio_encoder.quantizer.layers:
                layer.codebook.embed.normal_(std=8.0)  # they are zeros, and every piece would sound the same
    settings = music.generation_config
    settings._from_model_config = False  # else it is not read back
    settings.decoder_start_token_id = settings.pad_token_id = settings.bos_token_id = CODES
    settings.do_sample, settings.guidance_scale = True, 3.0
    music.save_pretrained(folder, safe_serialization=True)
    describe(folder, model)
