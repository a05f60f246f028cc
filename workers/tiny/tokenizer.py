"""The tokenizer of the tiny models: byte-level BPE, trained on a list of words in a blink.

All 256 bytes are in its alphabet, so any text can be encoded and no ordinary token is shorter than a
byte: a text never has more tokens than UTF-8 bytes.
"""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from workers.tiny.vocabulary import BEGIN, END, PUNCTUATION, SPECIAL_TOKENS, WORDS

VOCABULARY_SIZE = 1280
"""Above what the words need (about 1,000), and a multiple of 64, which suits every kernel."""

CHAT_TEMPLATE = """\
{%- macro text(content) -%}
{%- if content is string -%}{{ content }}
{%- elif content -%}{%- for part in content -%}{{ part.text }}{%- endfor -%}{%- endif -%}
{%- endmacro -%}
{%- if tools %}<|im_start|>system
{%- if messages[0].role == 'system' %}
{{ text(messages[0].content) }}
{%- endif %}
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
Call a tool with <tool_call>{"name": ..., "arguments": ...}</tool_call>.<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>{{ text(message.content) }}</tool_response><|im_end|>
{% elif message.tool_calls %}<|im_start|>assistant
{{ text(message.content) }}
{%- for call in message.tool_calls %}
<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% elif not (tools and loop.first and message.role == 'system') %}<|im_start|>{{ message.role }}
{{ text(message.content) }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""ChatML with tools in the manner of Hermes, which vLLM's tool parser `hermes` reads."""


def build_tokenizer() -> Tokenizer:
    """Train the tokenizer. Equal on every call."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        min_frequency=1,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    corpus = [form for word in WORDS for form in (f" {word}", word)] + list(PUNCTUATION)
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def word_ids(tokenizer: Tokenizer) -> list[int]:
    """Give the ids of whole words (with the space before them) and of punctuation."""
    forms = [f"\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}{word}" for word in WORDS]  # byte-level BPE writes a space so
    ids = (tokenizer.token_to_id(form) for form in (*forms, *PUNCTUATION))
    return [each for each in ids if each is not None]


def write_tokenizer(tokenizer: Tokenizer, folder: Path, context_tokens: int, **more: Any) -> None:
    """Write what transformers reads: `tokenizer.json`, its configuration (`more` of it), and the chat template."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": END,
        "pad_token": BEGIN,
        "model_max_length": context_tokens,
        "clean_up_tokenization_spaces": False,
        "add_bos_token": False,
        "chat_template": CHAT_TEMPLATE,
        **more,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
