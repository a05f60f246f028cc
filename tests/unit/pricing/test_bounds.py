"""The bound of prompt tokens, held against a real tokenizer and a real chat template."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.catalog.load import load_file
from gateway.contract.inputs import ChatInput, SpeechInput
from gateway.contract.inputs.text import Function, FunctionCall, Message, TextPart, Tool, ToolCall
from gateway.pricing.bounds import chat_tokens, speech_ms, utf8_bytes

LLAMA = load_file(Path(__file__).parents[3] / "catalog.yaml").models["tiny-llama"]

texts = st.text(max_size=20) | st.sampled_from(
    ["<|im_start|>", "fiancé €", "\x00", "\U0001d518\u2800", '{"a": [1, "\\""]}']
)
names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
schemas = st.dictionaries(names, st.dictionaries(names, texts | st.integers(), max_size=2), max_size=2)
calls = st.builds(
    ToolCall,
    id=names,
    function=st.builds(FunctionCall, name=names, arguments=st.dictionaries(names, texts).map(json.dumps)),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    content=texts | st.none() | st.lists(st.builds(TextPart, text=texts), max_size=3),
    tool_calls=st.none() | st.lists(calls, min_size=1, max_size=2),
)
tools = st.builds(
    Tool, function=st.builds(Function, name=names, description=st.none() | texts, parameters=st.none() | schemas)
)
chats = st.builds(
    ChatInput,
    messages=st.lists(messages, min_size=1, max_size=4),
    tools=st.none() | st.lists(tools, min_size=1, max_size=3),
)


@pytest.fixture(scope="module")
def count() -> Any:
    """Answer a function that counts tokens as the engine does: template, then tokenizer."""
    pytest.importorskip("tokenizers")
    sandbox = pytest.importorskip("jinja2.sandbox")
    from workers.engines.vllm.prompting import conversation, tool_list
    from workers.tiny.tokenizer import CHAT_TEMPLATE, build_tokenizer
    from workers.tiny.vocabulary import SPECIAL_TOKENS

    environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(CHAT_TEMPLATE)
    tokenizer = build_tokenizer()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))

    def counted(value: ChatInput) -> int:
        prompt = template.render(
            messages=conversation(value.messages), tools=tool_list(value.tools or ()), add_generation_prompt=True
        )
        return len(tokenizer.encode(prompt).ids)

    return counted


@settings(max_examples=300, deadline=None)
@given(value=chats)
def test_no_prompt_has_more_tokens_than_the_bound(count: Any, value: ChatInput) -> None:
    """With the overhead that catalog.yaml declares for this very template."""
    assert count(value) <= chat_tokens(value, LLAMA.prompt_overhead_tokens)


@given(st.text())
def test_bytes_are_those_of_utf8(text: str) -> None:
    assert utf8_bytes(text) == len(text.encode())


@pytest.mark.parametrize(
    "text", ["\ud7a8" * 4, "\u28ff" * 8, "9" * 36, "W" * 20, "7", "\U0001f468" * 4, "Plain prose, at an easy pace."]
)
def test_no_speech_is_longer_than_the_bound(text: str) -> None:
    """Held against espeak-ng with the slowest texts that a search of 23,000 code points found."""
    pytest.importorskip("espeakng_loader")
    from workers.engines.speech.library import Espeak
    from workers.engines.speech.voices import Voices

    espeak, heard = Espeak(), [0]

    def hear(samples: bytes, _: int) -> bool:
        heard[0] += len(samples) // 2
        return True

    voice = Voices(espeak.speakers(), espeak.variants()).resolve("en-us", None)
    espeak.speak(text, voice=voice, rate=175, pitch=50, heard=hear)
    assert heard[0] * 1000 / espeak.sample_rate <= speech_ms(SpeechInput(input=text))
