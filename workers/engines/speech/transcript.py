"""From Whisper's tokens and times to segments and words."""

from collections.abc import Callable, Sequence

from gateway.contract.events import Segment

UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue", "km"})
"""Languages that are written without spaces: there a word is what one token or a few stand for."""
UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""What bytes decode to that are not yet a whole character."""
CLOSING = "\"'.,!?:;)]}\u3002\uff0c\uff01\uff1f\uff1a\u201d\u3001"
"""Marks that belong to the word before them."""

Decode = Callable[[Sequence[int]], str]


def segment_of(text: str, start_s: float, end_s: float, length_ms: int) -> Segment | None:
    """Make a segment that lies within the sound; None where it says nothing, or begins behind the sound's end."""
    start, end = _within(start_s, length_ms), _within(end_s, length_ms)
    if not text.strip() or (start >= length_ms and length_ms):
        return None
    return Segment(start, max(start, end), text.strip())


def words_of(
    tokens: Sequence[int], times_s: Sequence[float], decode: Decode, language: str, length_ms: int
) -> list[Segment]:
    """Group tokens to words. `times_s` says of each token when it ends; a word begins where the one before ended."""
    words: list[tuple[str, float, float]] = []
    held: list[int] = []
    before_s = times_s[0] if times_s else 0.0
    for token, end_s in zip(tokens, times_s, strict=True):
        held.append(token)
        text = decode(held)
        if UNFINISHED in text:
            continue
        held = []
        goes_on = bool(words) and not text.startswith(" ") and language not in UNSPACED
        if goes_on or (words and text.strip() and text.strip() in CLOSING):
            said, start_s, _ = words[-1]
            words[-1] = (said + text, start_s, end_s)
        else:
            words.append((text, before_s, end_s))
        before_s = end_s
    made = (segment_of(text, start_s, end_s, length_ms) for text, start_s, end_s in words)
    return [word for word in made if word is not None]


def _within(seconds: float, length_ms: int) -> int:
    return max(0, min(round(seconds * 1000), length_ms))
