"""The units of an output: measured on what came; tokens are estimated where an upstream tells none."""

from gateway.contract.events import MediaOutput, Output, media_of
from gateway.contract.inputs import Input
from gateway.contract.units import Units
from workers.engine import Run

CHARS_A_TOKEN = 4
"""What a token is taken for where an upstream says nothing: English prose has about 4 characters to one."""


def estimated_tokens(chars: int, pieces: int = 0) -> int:
    """Estimate tokens by characters, or by the pieces in which they came where those are more; at least one."""
    return max(1, pieces, -(-chars // CHARS_A_TOKEN))


def count_media(run: Run, output: Output) -> None:
    """Count the media of an output, and the words and steps that were asked for, where the protocol has not."""
    made = [item for item in media_of(output) if not item.role]
    if not made:
        return
    found = Units()
    for item in made:
        _count(found, item)
    given = run.input
    found.characters = len(_words(given))
    steps = getattr(given, "steps", None)
    if isinstance(steps, int):
        found.steps = steps * max(1, found.images)
    for name in ("images", "pixels", "video_ms", "audio_ms", "characters", "steps"):
        if not getattr(run.units, name):
            setattr(run.units, name, getattr(found, name))


def _count(units: Units, item: MediaOutput) -> None:
    kind = item.media_type.partition("/")[0]
    if kind == "image":
        units.images += 1
        units.pixels += item.width * item.height
    elif kind == "video":
        units.video_ms += item.duration_ms
        units.pixels += item.frames * item.width * item.height
    else:
        units.audio_ms += item.duration_ms


def _words(given: Input) -> str:
    """Give the text that is to be spoken; empty where none is."""
    words = getattr(given, "input", None) or getattr(given, "text", None)
    return words if isinstance(words, str) else ""
