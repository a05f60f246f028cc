"""Text models of Replicate: a prediction whose output is followed as it comes, by events or by looking.

`urls.stream` gives server-sent events: `output` with the next piece, `error`, and `done`. It lies at another host,
which does not get the key. Where it is missing or breaks off, the prediction itself is looked at: its `output` is the
list of pieces so far. The metrics of official models count tokens; of others they are estimated.
"""

import asyncio
from typing import Any

from gateway.contract.events import Choice, Output, TextDelta, TextOutput
from gateway.contract.inputs import ChatInput, CompletionInput
from gateway.contract.inputs.text import Message, TextPart
from workers.engine import RefusedInput
from workers.engines.upstream.counting import estimated_tokens
from workers.engines.upstream.failures import UpstreamFailed, unreadable
from workers.engines.upstream.fields import wire
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.protocols.replicate_calls import cancel, cancel_after, create, prediction_id
from workers.engines.upstream.results import address, place, text_at
from workers.engines.upstream.verdicts import failed

FIELDS = {
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
    "stop": "stop_sequences",
}
FIRST_LOOK_S = 0.25
LONGEST_LOOK_S = 2.0
LOOK_GROWTH = 1.4
CANCEL_S = 10.0
MOST_TEXT_CHARS = 8 * 1024 * 1024


class Texts:
    """Follows predictions that write text."""

    async def perform(self, call: Call) -> Output:
        """Create a prediction, pass on what it writes, and count its tokens; one that is given up is cancelled."""
        body = _input(call)
        call.run.units.input_tokens = estimated_tokens(_length(body))
        call.estimated = True
        told = await create(call, body, cancel_after(call), stream=True)
        writing = _Writing(call, prediction_id(told))
        call.job = writing.id
        try:
            if call.run.watched and (url := address(place(told, "urls", "stream"))):
                await writing.listen(url)
            return await writing.finish(told)
        except BaseException:
            await asyncio.shield(_stop(call, writing.id))
            raise


async def _stop(call: Call, prediction: str) -> None:
    try:
        async with asyncio.timeout(CANCEL_S):
            await cancel(call, prediction)
    except TimeoutError:
        return


class _Writing:
    """A text as it is written."""

    def __init__(self, call: Call, prediction: str) -> None:
        self.id = prediction
        self._call = call
        self._said = ""

    async def listen(self, url: str) -> None:
        """Pass on the events of a stream; where it breaks off, the prediction says the rest."""
        try:
            async for event in self._call.parcels.events(url):
                if event.name == "output":
                    self._say(event.data.decode("utf-8", "replace"))
                elif event.name in ("done", "error"):
                    return
        except UpstreamFailed:
            return

    async def finish(self, told: Any) -> Output:
        """Look until the prediction has ended, and pass on what is new each time."""
        pause_s = FIRST_LOOK_S
        while True:
            status = text_at(told, "status")
            if status in ("failed", "canceled", "aborted"):
                raise failed(text_at(told, "error") or f"the prediction was {status}")
            self._catch_up(_text(place(told, "output")), whole=status == "succeeded")
            if status == "succeeded":
                break
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * LOOK_GROWTH, LONGEST_LOOK_S)
            told = await self._call.link.json("GET", f"/predictions/{self.id}")
            prediction_id(told)
        self._count(place(told, "metrics"))
        self._call.run.emit(TextDelta("", tokens=0, finish_reason="stop"))
        return TextOutput([Choice(self._said)])

    def _catch_up(self, text: str, *, whole: bool) -> None:
        """Say what the prediction has and the stream had not. Raises UpstreamFailed where the two differ."""
        if text.startswith(self._said):
            self._say(text[len(self._said) :])
        elif whole or not self._said.startswith(text):
            raise unreadable("the stream of a text and its whole differ")

    def _say(self, piece: str) -> None:
        if not piece:
            return
        self._said += piece
        if len(self._said) > MOST_TEXT_CHARS:
            raise unreadable(f"a text of more than {MOST_TEXT_CHARS} characters")
        units = self._call.run.units
        before = units.output_tokens
        units.output_tokens = max(before + 1, estimated_tokens(len(self._said)))
        self._call.run.emit(TextDelta(piece, tokens=units.output_tokens - before))

    def _count(self, metrics: Any) -> None:
        units = self._call.run.units
        taken, given = place(metrics, "input_token_count"), place(metrics, "output_token_count")
        if (
            isinstance(taken, int)
            and isinstance(given, int)
            and taken >= 0
            and given >= 0
            and (given or not self._said)
        ):
            units.input_tokens, units.output_tokens = taken, given
            self._call.estimated = False


def _text(output: Any) -> str:
    """Read an output so far: pieces, or the whole."""
    if isinstance(output, list):
        return "".join(each for each in output if isinstance(each, str))
    return output if isinstance(output, str) else ""


def _input(call: Call) -> dict[str, Any]:
    given = call.run.input
    assert isinstance(given, ChatInput | CompletionInput)
    if (given.n or 1) > 1:
        raise RefusedInput("This provider gives one answer at a time: leave `n` out.")
    if isinstance(given, CompletionInput):
        return {**wire(call, FIELDS), "prompt": given.prompt}
    if given.tools:
        raise RefusedInput("This provider's models call no tools.")
    body = wire(call, FIELDS)
    system = [_plain(message) for message in given.messages if message.role in ("system", "developer")]
    if system:
        body["system_prompt"] = "\n\n".join(system)
    body["prompt"] = _prompt([message for message in given.messages if message.role in ("user", "assistant")])
    return body


def _prompt(turns: list[Message]) -> str:
    """Write a conversation as one text: a single turn as it stands."""
    if not turns:
        raise RefusedInput("There is no message of a user.")
    if len(turns) == 1:
        return _plain(turns[0])
    names = {"user": "User", "assistant": "Assistant"}
    return "\n\n".join(f"{names[turn.role]}: {_plain(turn)}" for turn in turns) + "\n\nAssistant:"


def _plain(message: Message) -> str:
    content = message.content
    if not isinstance(content, list):
        return content or ""
    if not all(isinstance(part, TextPart) for part in content):
        raise RefusedInput("This provider's models read text only.")
    return "".join(part.text for part in content if isinstance(part, TextPart))


def _length(body: dict[str, Any]) -> int:
    return len(str(body.get("prompt", ""))) + len(str(body.get("system_prompt", "")))
