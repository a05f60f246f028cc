"""What the fake engine says: token `i` of choice `c` is always the same word, whatever was asked.

Tokens are counted in words: the input's are the words of all messages between white space, an output
token is one word with the space before it.
"""

from functools import lru_cache

import msgspec

from gateway.contract.events import Choice, TextDelta, TextOutput, TokenLogprob
from gateway.contract.inputs import ChatInput, CompletionInput
from gateway.contract.inputs.text import Stop, TextFormat, TextPart
from workers.engine import RefusedInput

WORDS = ("the", "gate", "opens", "at", "dawn", "and", "every", "fare", "is", "counted", "once", "before", "it", "shuts")


class Script(msgspec.Struct, frozen=True):
    """A whole answer, ready to be given at once or piece by piece; shared by all requests that ask for the same."""

    deltas: tuple[tuple[TextDelta, ...], ...]
    """The deltas of each choice; each stands for one token."""
    output: TextOutput
    tokens: int
    """Of all choices together."""


def prompt_of(given: ChatInput | CompletionInput) -> str:
    """Give all the text of an input; messages are separated by a line feed."""
    if isinstance(given, CompletionInput):
        return given.prompt
    if len(given.messages) == 1 and isinstance(content := given.messages[0].content, str):
        return content
    parts: list[str] = []
    for message in given.messages:
        if isinstance(message.content, str):
            parts.append(message.content)
        elif message.content is not None:
            parts.extend(part.text for part in message.content if isinstance(part, TextPart))
    return "\n".join(parts)


def script_of(given: ChatInput | CompletionInput, tokens: int) -> Script:
    """Compose the answer to an input. Raises RefusedInput for what the engine cannot honour."""
    limit = given.max_tokens
    if isinstance(given, ChatInput):
        limit = given.max_completion_tokens or limit
        if given.tool_choice not in (None, "none", "auto"):
            raise RefusedInput("The fake engine calls no tools: leave tool_choice at auto or none.")
    elif given.echo:
        raise RefusedInput("The fake engine does not repeat the prompt: leave echo out.")
    if given.response_format is not None and not isinstance(given.response_format, TextFormat):
        raise RefusedInput("The fake engine writes plain words only: leave response_format out, or ask for text.")
    rivals = _rivals(given)
    return _compose(tokens, min(limit or tokens, tokens), _stops(given.stop), given.n or 1, rivals)


def _stops(stop: Stop | None) -> tuple[str, ...]:
    if stop is None:
        return ()
    return (stop,) if isinstance(stop, str) else tuple(stop)


def _rivals(given: ChatInput | CompletionInput) -> int:
    """Give how many alternatives each token's log-probability is to list; -1 where none is asked for."""
    if isinstance(given, CompletionInput):
        return -1 if given.logprobs is None else given.logprobs
    return (given.top_logprobs or 0) if given.logprobs else -1


@lru_cache(maxsize=256)
def _compose(tokens: int, limit: int, stops: tuple[str, ...], choices: int, rivals: int) -> Script:
    written = [_choice(number, tokens, limit, stops, rivals) for number in range(choices)]
    output = TextOutput([choice for choice, _ in written])
    deltas = tuple(pieces for _, pieces in written)
    return Script(deltas, output, sum(map(len, deltas)))


def _choice(
    number: int, tokens: int, limit: int, stops: tuple[str, ...], rivals: int
) -> tuple[Choice, tuple[TextDelta, ...]]:
    words = [WORDS[(at + number) % len(WORDS)] for at in range(min(tokens, limit))]
    pieces = words[:1] + [" " + word for word in words[1:]]
    pieces, stopped = _cut(pieces, stops)
    reason = "stop" if stopped or tokens <= limit else "length"
    last = len(pieces) - 1
    logprobs = None if rivals < 0 else [_certain(piece, rivals) for piece in pieces]
    deltas = tuple(
        TextDelta(
            piece,
            choice=number,
            finish_reason=reason if at == last else None,
            logprobs=None if logprobs is None else [logprobs[at]],
        )
        for at, piece in enumerate(pieces)
    )
    return Choice("".join(pieces), reason, logprobs=logprobs), deltas


def _certain(piece: str, rivals: int) -> TokenLogprob:
    """What is always said has probability 1, and no rival."""
    return TokenLogprob(piece, 0.0, [(piece, 0.0)] if rivals else [])


def _cut(pieces: list[str], stops: tuple[str, ...]) -> tuple[list[str], bool]:
    """Cut the text before the first stop; the tokens up to the one that completed it have been produced."""
    text = "".join(pieces)
    found = [(at + len(stop), at) for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        return pieces, False
    end, start = min(found)
    cut: list[str] = []
    begun = 0
    for piece in pieces:
        if begun >= end:
            break
        cut.append(piece[: max(0, start - begun)])
        begun += len(piece)
    return cut, True
