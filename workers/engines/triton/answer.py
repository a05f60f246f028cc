"""Puts an answer together from the responses of a stream."""

from collections.abc import Sequence

from gateway.contract.events import Choice, TextDelta
from workers.engine import Run
from workers.engines.triton.stops import StopScanner


class Growing:
    """One choice as it grows. Text that may begin a stop text is held back, and its tokens with it."""

    def __init__(self, run: Run, index: int, limit: int, stops: Sequence[str], *, accumulated: bool) -> None:
        self._run = run
        self._index = index
        self._limit = limit
        self._scanner = StopScanner(stops)
        self._accumulated = accumulated
        self._heard = ""
        self._shown: list[str] = []
        self._held_tokens = 0
        self._most = 0
        self.tokens = 0
        """How many are counted so far, and stand in the units of the run."""

    @property
    def stopped(self) -> bool:
        """Whether a stop text has come."""
        return self._scanner.found

    @property
    def heard(self) -> str:
        """All that the model has said, stop texts and what follows them included."""
        return self._heard

    def count(self, tokens: int) -> None:
        """Note that the choice has so many more tokens."""
        tokens = min(tokens, self._limit - self.tokens)
        self.tokens += tokens
        self._most = max(self._most, self.tokens)
        self._held_tokens += tokens
        self._run.units.output_tokens += tokens

    def recount(self, tokens: int) -> None:
        """Put an exact count in the place of the one so far."""
        tokens = min(tokens, self._limit)
        self._run.units.output_tokens += tokens - self.tokens
        self.tokens = tokens
        self._most = max(self._most, tokens)

    def add(self, text: str) -> None:
        """Take the text of a response: what is new, or all of it again."""
        if self._accumulated:
            text = text[len(self._heard) :]
        self._heard += text
        shown = self._scanner.feed(text)
        if shown:
            self._tell(shown)

    def finish(self) -> Choice:
        """Say that the choice has ended, and give the whole of it."""
        reason = "length" if not self.stopped and self._most >= self._limit else "stop"
        self._tell(self._scanner.rest(), reason)
        return Choice("".join(self._shown), finish_reason=reason)

    def repeat(self, prompt: str) -> None:
        """Put the prompt in front, as a caller may ask."""
        self._shown.append(prompt)
        self._run.emit(TextDelta(prompt, tokens=0, choice=self._index))

    def _tell(self, text: str, reason: str | None = None) -> None:
        self._shown.append(text)
        tokens, self._held_tokens = self._held_tokens, 0
        self._run.emit(TextDelta(text, tokens=tokens, choice=self._index, finish_reason=reason))
