"""What the fake engine hears: a word for each quarter of a second, whatever the sound."""

from gateway.contract.events import Segment, TextDelta, TranscriptOutput
from gateway.contract.inputs import Media, TranscriptionInput
from workers.engine import RefusedInput, Run
from workers.engines.fake.options import FakeOptions
from workers.engines.fake.script import WORDS
from workers.engines.fake.steps import stepped

MS_PER_WORD = 250
WORDS_PER_SEGMENT = 8


async def hear(run: Run, options: FakeOptions) -> TranscriptOutput:
    """Write down a sound: a word for each quarter of a second, always the same."""
    given: TranscriptionInput = run.input  # type: ignore[assignment]
    if not await run.read(given.file):
        raise RefusedInput("The file is empty.")
    length_ms = given.file.duration_ms if isinstance(given.file, Media) else 0
    count = max(1, length_ms // MS_PER_WORD)
    words = []
    with run.phases.timed("forward"):
        run.began()
        async for step in stepped(run, count, options.interval_ms / 1000):
            word = WORDS[(step - 1) % len(WORDS)]
            words.append(Segment((step - 1) * MS_PER_WORD, min(step * MS_PER_WORD, length_ms), word))
            run.units.audio_ms = length_ms * step // count
            run.emit(TextDelta(word if step == 1 else " " + word))
    wanted = given.timestamp_granularities or []
    return TranscriptOutput(
        " ".join(word.text for word in words),
        "en" if given.translate else given.language or "en",
        length_ms,
        [_joined(words[at : at + WORDS_PER_SEGMENT]) for at in range(0, count, WORDS_PER_SEGMENT)],
        words if "word" in wanted else [],
    )


def _joined(words: list[Segment]) -> Segment:
    return Segment(words[0].start_ms, words[-1].end_ms, " ".join(word.text for word in words))
