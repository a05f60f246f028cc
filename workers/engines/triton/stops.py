"""Ends a text at the first of its stop texts.

TensorRT-LLM looks for stop words by their tokens, misses those that are cut differently, and leaves them in the text;
so they are looked for here as well.
"""

from collections.abc import Sequence


class StopScanner:
    """Lets text through but for what may be the beginning of a stop text, which waits for what comes next."""

    __slots__ = ("_held", "_stops", "found")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.found = False
        """Whether a stop text has come: nothing is let through from then on."""

    def feed(self, piece: str) -> str:
        """Take what is new and answer what may be shown."""
        if self.found:
            return ""
        if not self._stops:
            return piece
        text = self._held + piece
        places = [place for place in (text.find(stop) for stop in self._stops) if place >= 0]
        if places:
            self.found = True
            self._held = ""
            return text[: min(places)]
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def rest(self) -> str:
        """Answer what was held back, when no more comes."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Say how many of the last characters of a text begin a stop text."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)
