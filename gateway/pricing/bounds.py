"""The most units that an input can come to, without running or tokenising it.

Tokens. Every token of a byte-level or byte-fallback tokenizer covers at least one byte of UTF-8, so a
text has at most as many tokens as bytes. What a chat template adds is the model's declared overhead,
once for each message and once for the whole. Tools are counted as JSON with an indent of four and
escapes for what is not ASCII, the longest form in which chat templates print them, and with a kibibyte
for the instructions around them.

Audio is bounded by the contract (`longest_speech_ms`), since engines cut off what is longer.
"""

import json

import msgspec

from gateway.contract.inputs import ChatInput, CompletionInput, EmbeddingInput, Media, RerankInput, SpeechInput
from gateway.contract.inputs.speech import longest_speech_ms
from gateway.contract.inputs.text import (
    AudioPart,
    ChoiceFormat,
    ImagePart,
    JsonSchemaFormat,
    Message,
    RegexFormat,
    ResponseFormat,
    TextPart,
    Tool,
)

JOIN_BYTES = 1
"""Between two text parts of one message."""
TOOLS_BYTES = 1_024
"""What a chat template says about tools when there are any."""
TOOL_BYTES = 256
"""What an engine adds to each tool: its type, an empty description, an empty schema, with their indents."""
TOOL_CALL_BYTES = 64
"""What a chat template puts around each tool call of an assistant's message."""


def utf8_bytes(text: str) -> int:
    """Count the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def chat_tokens(value: ChatInput, overhead: int, image_tokens: int = 0, audio_tokens_per_s: int = 0) -> int:
    """Bound the prompt tokens of a conversation; an image and a second of sound count as the model declares."""
    total = overhead * (len(value.messages) + 1)
    for message in value.messages:
        content = message.content
        if isinstance(content, str):
            total += utf8_bytes(content)
        elif content is not None:
            for part in content:
                if isinstance(part, TextPart):
                    total += utf8_bytes(part.text) + JOIN_BYTES
                elif isinstance(part, ImagePart):
                    total += image_tokens
                else:
                    total += _sound_tokens(part, audio_tokens_per_s)
        if message.name is not None or message.tool_calls is not None or message.tool_call_id is not None:
            total += _extras_bytes(message)
    if value.tools is not None:
        total += _tools_bytes(value.tools)
    if value.response_format is not None:
        total += _format_bytes(value.response_format)
    return total


def _sound_tokens(part: AudioPart, tokens_per_s: int) -> int:
    data = part.input_audio.data
    return -(-data.duration_ms * tokens_per_s // 1000) if isinstance(data, Media) else 0


def completion_tokens(value: CompletionInput, overhead: int) -> int:
    """Bound the prompt tokens of a completion."""
    extra = _format_bytes(value.response_format) if value.response_format is not None else 0
    return overhead + utf8_bytes(value.prompt) + extra


def embedding_tokens(value: EmbeddingInput, overhead: int, context: int) -> int:
    """Bound the tokens of all texts to embed; each fits the context by itself."""
    texts = [value.input] if isinstance(value.input, str) else value.input
    bounds = (overhead + utf8_bytes(text) for text in texts)
    return sum(min(bound, context) for bound in bounds) if context else sum(bounds)


def rerank_tokens(value: RerankInput, overhead: int, context: int) -> int:
    """Bound the tokens of all pairs of query and document; each pair fits the context by itself."""
    query = 2 * overhead + utf8_bytes(value.query)
    bounds = (query + utf8_bytes(document) for document in value.documents)
    return sum(min(bound, context) for bound in bounds) if context else sum(bounds)


def speech_ms(value: SpeechInput) -> int:
    """Bound the milliseconds of audio of a speech."""
    return longest_speech_ms(value.input, value.speed)


def _extras_bytes(message: Message) -> int:
    """Bound a message's names and tool calls. Templates print arguments again: a separator may gain a space."""
    total = utf8_bytes(message.name or "") + utf8_bytes(message.tool_call_id or "")
    for call in message.tool_calls or ():
        arguments = utf8_bytes(call.function.arguments)
        total += len(msgspec.json.encode(call)) + arguments + TOOL_CALL_BYTES
    return total


def _tools_bytes(tools: list[Tool]) -> int:
    return TOOLS_BYTES + len(json.dumps(msgspec.to_builtins(tools), indent=4)) + TOOL_BYTES * len(tools)


def _format_bytes(value: ResponseFormat) -> int:
    if isinstance(value, JsonSchemaFormat):
        return len(msgspec.json.encode(value.json_schema))
    if isinstance(value, RegexFormat):
        return utf8_bytes(value.regex)
    if isinstance(value, ChoiceFormat):
        return sum(map(utf8_bytes, value.choices))
    return 0
