"""How speech is written: piece by piece as it is made, or all at once where its engine does not stream."""

import json
from base64 import b64decode
from typing import Any

import pytest

from gateway.contract.events import AudioDelta, MediaOutput
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.flow.respond import Answer
from gateway.http.openai.speech import SpeechBytes, SpeechEvents, SpeechShape

WHOLE = MediaOutput("audio/wav", 3, b"abc", duration_ms=1)


def answer() -> Answer:
    return Answer(
        id="req_01",
        model="m",
        created_s=0,
        outcome="succeeded",
        output=WHOLE,
        units=Units(),
        phases=Phases(),
        total_us=0,
        charge_nanos=0,
        hold_nanos=0,
        price_version=1,
        attempt=1,
    )


def told(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix(b"data: ")) for line in data.split(b"\n\n") if line]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_stream_has_the_sound_once(streamed: bool) -> None:
    pieces = [AudioDelta(b"a"), AudioDelta(b"bc")] if streamed else []
    plain, events = SpeechBytes(b"audio/wav"), SpeechEvents()
    assert plain.deltas(pieces) + plain.end(answer()) == b"abc"
    *sounds, done = told(events.deltas(pieces) + events.end(answer()))
    assert b"".join(b64decode(each["audio"]) for each in sounds) == b"abc"
    assert (len(sounds), done["type"]) == (2 if streamed else 1, "speech.audio.done")


def test_a_whole_file_is_called_what_it_is() -> None:
    """An upstream's model that takes no format gives its own."""
    headers, data = SpeechShape(None, "mp3").whole(answer())
    assert (dict(headers)[b"content-type"], data) == (b"audio/wav", b"abc")
