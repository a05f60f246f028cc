"""From messages to the one text that the ensemble takes, and how many tokens it has."""

import asyncio
from typing import Any

import msgspec

from gateway.contract.inputs import ChatInput, CompletionInput
from gateway.contract.inputs.text import ContentPart, Message, TextPart
from workers.engine import RefusedInput
from workers.engines.triton.options import TritonOptions
from workers.engines.triton.tokenizer import ChatTemplate, Tokenizer

APART_CHARS = 4096
"""From how many characters on a prompt is made in a thread: about 2 ms of work."""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt; `tokens` is 0 where nobody here counts them."""

    text: str
    tokens: int


class Prompter:
    """Makes prompts of one model."""

    def __init__(self, template: ChatTemplate | None, tokenizer: Tokenizer | None, options: TritonOptions) -> None:
        self._template = template
        self._tokenizer = tokenizer
        self._context = options.context_tokens

    async def prompt(self, given: ChatInput | CompletionInput) -> Prompt:
        """Make a prompt. Raises RefusedInput where template or context does not take it."""
        made = await (asyncio.to_thread(self._make, given) if _size(given) > APART_CHARS else _now(self._make(given)))
        if not made.text:
            raise RefusedInput("The prompt is empty.")
        if self._context is not None and made.tokens >= self._context:
            raise RefusedInput(
                f"The prompt has {made.tokens} tokens and fills the context of {self._context}: shorten it."
            )
        return made

    def room(self, prompt: Prompt) -> int | None:
        """Say how many tokens the context leaves for an answer; None where the server knows."""
        return None if self._context is None or not prompt.tokens else self._context - prompt.tokens

    def count(self, text: str) -> int:
        """Count the tokens of an answer; 0 without a tokenizer."""
        return 0 if self._tokenizer is None else len(self._tokenizer.ids(text, special=False))

    def _make(self, given: ChatInput | CompletionInput) -> Prompt:
        if isinstance(given, CompletionInput):
            text = given.prompt
        elif self._template is None:
            raise RefusedInput("This model has no chat template: call it for completions.")
        else:
            text = self._template.prompt([_turn(message) for message in given.messages])
        # A chat template writes the tokens that begin a text itself; of a bare prompt, the tokenizer adds them.
        special = isinstance(given, CompletionInput)
        return Prompt(text, 0 if self._tokenizer is None else len(self._tokenizer.ids(text, special=special)))


async def _now(prompt: Prompt) -> Prompt:
    return prompt


def _turn(message: Message) -> dict[str, Any]:
    if message.tool_calls or message.role == "tool":
        raise RefusedInput("This model calls no tools: leave their calls and answers out of the conversation.")
    turn = {"role": message.role, "content": _text(message.content)}
    return turn if message.name is None else turn | {"name": message.name}


def _text(content: str | list[ContentPart] | None) -> str:
    if not isinstance(content, list):
        return content or ""
    if not all(isinstance(part, TextPart) for part in content):
        raise RefusedInput("This model reads text only.")
    return "".join(part.text for part in content if isinstance(part, TextPart))


def _size(given: ChatInput | CompletionInput) -> int:
    if isinstance(given, CompletionInput):
        return len(given.prompt)
    return sum(len(_text(message.content)) for message in given.messages)
