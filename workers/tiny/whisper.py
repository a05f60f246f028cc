"""A tiny Whisper of three languages, with the tokens of the real ones: languages, tasks, times."""

import json
from pathlib import Path
from typing import Any

from workers.tiny.models import TinyModel
from workers.tiny.tokenizer import build_tokenizer
from workers.tiny.torch_weights import describe, seeded
from workers.tiny.vocabulary import PUNCTUATION, SPECIAL_TOKENS, WORDS

LANGUAGES = ("en", "de", "fr")
MARKS = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    *(f"<|{language}|>" for language in LANGUAGES),
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
)
"""In the order in which Whisper has them, behind the words and before the times."""
TIMES = tuple(f"<|{step / 50:.2f}|>" for step in range(1501))
WIDTH = 64
WORD_LOGIT, OTHER_LOGIT, TIME_LOGIT, END_LOGIT = 0.0, -12.0, -4.0, 4.0
SPREAD = 0.25
"""The deviation of the embeddings, and so by the root of the width that of the logits: 2."""


def write_whisper(folder: Path, model: TinyModel) -> None:
    """Write the model, its tokenizer, and how it hears."""
    from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    ids, words = _write_tokenizer(folder)
    WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
    config = WhisperConfig(
        vocab_size=len(ids),
        num_mel_bins=80,
        d_model=WIDTH,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=1500,
        max_target_positions=448,
        pad_token_id=ids["<|endoftext|>"],
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|endoftext|>"],
        decoder_start_token_id=ids["<|startoftranscript|>"],
        init_std=SPREAD,
    )
    with seeded(model.seed) as torch:
        whisper = WhisperForConditionalGeneration(config)
        with torch.no_grad():
            _prefer(whisper, ids, words)
    _set_up(whisper.generation_config, ids)
    whisper.save_pretrained(folder, safe_serialization=True)
    describe(folder, model)


def _write_tokenizer(folder: Path) -> tuple[dict[str, int], list[int]]:
    """Write the tokenizer; gives the id of every token, and those of whole words."""
    from transformers import WhisperTokenizer

    bpe = json.loads(build_tokenizer().to_str())["model"]
    texts = [token for token in sorted(bpe["vocab"], key=bpe["vocab"].get) if token not in SPECIAL_TOKENS]
    vocabulary = {token: at for at, token in enumerate((*texts, *MARKS, *TIMES))}
    tokenizer = WhisperTokenizer(vocab=dict(vocabulary), merges=[tuple(pair) for pair in bpe["merges"]])
    tokenizer.add_special_tokens({"additional_special_tokens": list(MARKS[1:])})
    tokenizer.add_tokens(list(TIMES))
    tokenizer.save_pretrained(folder)
    whole = [f"\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}{word}" for word in WORDS]
    return vocabulary, [vocabulary[token] for token in (*whole, *PUNCTUATION) if token in vocabulary]


def _prefer(whisper: Any, ids: dict[str, int], words: list[int]) -> None:
    """Make dimension 0 behind the last norm a constant, and so column 0 of the output matrix a bias."""
    whisper.model.decoder.embed_positions.weight.mul_(4.0)  # else each word brings forth itself again
    norm = whisper.model.decoder.layer_norm
    norm.weight[0], norm.bias[0] = 0.0, 1.0
    likes = whisper.model.decoder.embed_tokens.weight[:, 0]
    likes.fill_(OTHER_LOGIT)
    likes[words] = WORD_LOGIT
    likes[ids[MARKS[1]] : ids[TIMES[0]]] = WORD_LOGIT  # never said, but heeded: -12 would drown what tells them apart
    likes[ids[TIMES[0]] :] = TIME_LOGIT
    likes[ids["<|endoftext|>"]] = END_LOGIT


def _set_up(settings: Any, ids: dict[str, int]) -> None:
    """Set what real checkpoints of Whisper set for their generation."""
    settings._from_model_config = False  # else it is not read back
    settings.is_multilingual = True
    settings.lang_to_id = {f"<|{language}|>": ids[f"<|{language}|>"] for language in LANGUAGES}
    settings.task_to_id = {"transcribe": ids["<|transcribe|>"], "translate": ids["<|translate|>"]}
    settings.no_timestamps_token_id = ids["<|notimestamps|>"]
    settings.prev_sot_token_id = ids["<|startofprev|>"]
    settings.decoder_start_token_id = ids["<|startoftranscript|>"]
    settings.pad_token_id = settings.bos_token_id = settings.eos_token_id = ids["<|endoftext|>"]
    settings.max_initial_timestamp_index = 50
    settings.max_length = 128
    settings.alignment_heads = [[0, 0], [1, 1]]
    settings.begin_suppress_tokens = [ids["<|endoftext|>"]]
    settings.suppress_tokens = [ids[mark] for mark in MARKS[1:-1]]
    settings.return_timestamps = False
