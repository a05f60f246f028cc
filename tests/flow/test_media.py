"""Media of any size come back whole, to who waits and to who asks later."""

from tests.system import System

INLINE_BYTES = 4 * 1024 * 1024
TEXT = "Mind the gap between the platform and the train. " * 60


def test_speech_too_large_for_the_queue_comes_back_whole(system: System) -> None:
    system.wait_ready("espeak-ng")
    body = {"model": "espeak-ng", "input": TEXT, "response_format": "wav"}
    with system.client() as client:
        answer = client.post("/v1/audio/speech", json=body)
    assert answer.status_code == 200
    assert answer.headers["x-faregate-charge-nanos"] == "2000000"
    assert len(answer.content) > INLINE_BYTES
    assert answer.content[:4] == b"RIFF"
    assert int.from_bytes(answer.content[4:8], "little") == len(answer.content) - 8


def test_a_repeat_of_an_idempotent_speech_is_the_same_file(system: System) -> None:
    system.wait_ready("espeak-ng")
    body = {"model": "espeak-ng", "input": "Mind the gap.", "response_format": "flac"}
    with system.client() as client:
        first, again = (
            client.post("/v1/audio/speech", json=body, headers={"idempotency-key": "gap-1"}) for _ in range(2)
        )
    assert first.headers["x-request-id"] == again.headers["x-request-id"]
    assert first.content == again.content
    assert first.content[:4] == b"fLaC"
