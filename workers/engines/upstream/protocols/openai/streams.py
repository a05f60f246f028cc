"""Chat and completions as they come: deltas passed on, tokens counted on the way, and an end that must be one."""

from typing import Any

import msgspec

from gateway.contract.events import Choice, Output, TextDelta, TextOutput, TokenLogprob, ToolCallDelta
from workers.engines.upstream.counting import estimated_tokens
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.protocol import Call, UpstreamFailed
from workers.engines.upstream.protocols.openai.reading import (
    chat_logprobs,
    completion_logprobs,
    read_answer,
    tool_calls,
)
from workers.engines.upstream.protocols.openai.shapes import AnyChoice, finish_of, reasoning_of, text_of
from workers.engines.upstream.protocols.openai.usage import cost_in, count
from workers.engines.upstream.sse import ServerEvent

MOST_CHOICES = 16
DONE = b"[DONE]"


class _Growing:
    """One choice while it comes."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.logprobs: list[TokenLogprob] = []
        self.calls: dict[int, ToolCallDelta] = {}
        self.finish: str | None = None

    def whole(self) -> Choice:
        calls = [self.calls[index] for index in sorted(self.calls)] or None
        return Choice(
            "".join(self.texts), self.finish or "stop", "".join(self.thoughts) or None, self.logprobs or None, calls
        )

    def add(
        self,
        text: str,
        thought: str | None,
        calls: list[ToolCallDelta] | None,
        logprobs: list[TokenLogprob] | None,
        finish: str | None,
    ) -> None:
        self.texts.append(text)
        if thought:
            self.thoughts.append(thought)
        if calls:
            self._add_calls(calls)
        if logprobs:
            self.logprobs += logprobs
        if finish:
            self.finish = finish

    def _add_calls(self, pieces: list[ToolCallDelta]) -> None:
        for piece in pieces:
            known = self.calls.get(piece.index)
            if known is None:
                self.calls[piece.index] = piece
                continue
            self.calls[piece.index] = ToolCallDelta(
                piece.index, known.id or piece.id, known.name or piece.name, known.arguments + piece.arguments
            )


class Stream:
    """One streamed call."""

    def __init__(self, call: Call, path: str, body: dict[str, Any], *, is_chat: bool) -> None:
        self._call = call
        self._path = path
        self._body = body | {"stream": True, "stream_options": {"include_usage": True}}
        self._is_chat = is_chat
        self._choices: dict[int, _Growing] = {}
        self._chars = self._pieces = 0
        self._sent_chars = 0
        self._done = False
        self._usage = msgspec.Raw(b"")

    async def follow(self) -> Output:
        """Read it to its end. Raises UpstreamFailed where it breaks off; units stand as far as it came."""
        call = self._call
        self._sent_chars = len(msgspec.json.encode(self._body))
        call.estimated = True
        async with call.link.stream("POST", self._path, json=self._body) as opened:
            call.cost_nanos = cost_in(opened.headers)
            call.run.units.input_tokens = estimated_tokens(self._sent_chars)
            await opened.each_event(self._take)
            if self._done:
                opened.over()
        if not self._choices or not (self._done or all(choice.finish for choice in self._choices.values())):
            raise UpstreamFailed(
                "The provider broke off its answer.", detail=f"half a stream: {self._pieces} pieces came", sent=True
            )
        count(call, self._usage, sent_chars=self._sent_chars, came_chars=self._chars, pieces=self._pieces)
        return TextOutput([self._choices[index].whole() for index in sorted(self._choices)])

    def _take(self, event: ServerEvent) -> bool:
        """Take one event, and say whether it was the last."""
        if event.data == DONE:
            self._done = True
            return True
        chunk = read_answer(event.data)
        if chunk.usage and bytes(chunk.usage) != b"null":
            self._usage = chunk.usage
        for choice in chunk.choices or ():
            self._add(choice)
        return False

    def _add(self, choice: AnyChoice) -> None:
        growing = self._choices.get(choice.index)
        if growing is None:
            if not 0 <= choice.index < MOST_CHOICES:
                raise unreadable(f"a choice with the number {choice.index}")
            growing = self._choices[choice.index] = _Growing()
        said = choice.delta
        text = (text_of(said.content) or said.refusal or "") if said else choice.text or ""
        thought = reasoning_of(said) if said else None
        calls = tool_calls(said.tool_calls) if said else None
        logprobs = None
        if choice.logprobs is not None:
            logprobs = chat_logprobs(choice.logprobs) if self._is_chat else completion_logprobs(choice.logprobs)
        finish = finish_of(choice.finish_reason) if choice.finish_reason is not None else None
        if not (text or thought or calls or finish):
            return
        self._count(text, thought, calls)
        growing.add(text, thought, calls, logprobs, finish)
        self._call.run.emit(TextDelta(text, 1, choice.index, finish, thought, logprobs, calls))

    def _count(self, text: str, thought: str | None, calls: list[ToolCallDelta] | None) -> None:
        """Count what came, so that an answer that breaks off, or tells no usage, is not counted as nothing."""
        chars = len(text) + len(thought or "")
        if calls:
            chars += sum(len(call.arguments) + len(call.name or "") for call in calls)
        if chars:
            self._chars += chars
            self._pieces += 1
            self._call.run.units.output_tokens = estimated_tokens(self._chars, self._pieces)
