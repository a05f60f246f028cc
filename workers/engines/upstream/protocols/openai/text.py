"""Chat and completions, whole."""

import msgspec

from gateway.contract.events import Choice, Output, TextDelta, TextOutput
from gateway.contract.inputs import ChatInput, CompletionInput
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.protocols.openai.bodies import text_body
from workers.engines.upstream.protocols.openai.reading import (
    chat_logprobs,
    completion_logprobs,
    read_answer,
    tool_calls,
)
from workers.engines.upstream.protocols.openai.shapes import AnyChoice, finish_of, reasoning_of, text_of
from workers.engines.upstream.protocols.openai.streams import Stream
from workers.engines.upstream.protocols.openai.usage import cost_in, count


class Text:
    """Chat, or completions."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def perform(self, call: Call) -> Output:
        """Call, as a stream where the caller streams."""
        given = call.run.input
        assert isinstance(given, ChatInput | CompletionInput)
        body = await text_body(call, given)
        if call.run.request.stream:
            return await Stream(call, self._path, body, is_chat=isinstance(given, ChatInput)).follow()
        content = msgspec.json.encode(body)
        answer = await call.link.send("POST", self._path, content=content, media_type="application/json")
        call.cost_nanos = cost_in(answer.headers)
        read = read_answer(answer.body)
        choices = [read_choice(choice) for choice in sorted(read.choices or [], key=lambda each: each.index)]
        if not choices:
            raise unreadable("an answer without choices")
        came = sum(chars_of(choice) for choice in choices)
        count(call, read.usage, sent_chars=len(content), came_chars=came)
        if call.run.watched:
            for index, choice in enumerate(choices):
                call.run.emit(_as_delta(choice, index))
        return TextOutput(choices)


def read_choice(choice: AnyChoice) -> Choice:
    """Make a whole answer of a choice."""
    finish = finish_of(choice.finish_reason)
    said = choice.message
    if said is None:
        return Choice(choice.text or "", finish, logprobs=completion_logprobs(choice.logprobs))
    calls = tool_calls(said.tool_calls)
    text = text_of(said.content) or (said.refusal or "")
    return Choice(text, finish, reasoning_of(said), chat_logprobs(choice.logprobs), calls)


def chars_of(choice: Choice) -> int:
    """Count the characters of an answer, thoughts and tool calls among them."""
    called = sum(len(each.arguments) + len(each.name or "") for each in choice.tool_calls or [])
    return len(choice.text) + len(choice.reasoning or "") + called


def _as_delta(choice: Choice, index: int) -> TextDelta:
    return TextDelta(choice.text, 1, index, choice.finish_reason, choice.reasoning, choice.logprobs, choice.tool_calls)
