"""Speech by models through HTTP, against a whole system: heard, charged, phases told, and nothing held afterwards."""

import base64
import io
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import av
import openai
import pytest

from tests.conftest import absent
from tests.engines.speech_driver import encoded, voice
from tests.system import System, running_system

pytestmark = pytest.mark.slow

LOAD_S = 240.0
CATALOG = """
pools:
  voices: {engine: speech}
models:
  vits:
    tasks: [text-to-speech]
    description: A tiny VITS.
    source: tiny:tiny-vits
    price: [{usd: 1, per: 1M characters}]
    routes: [{pool: voices}]
  speecht5:
    tasks: [voice-clone]
    description: A tiny SpeechT5.
    source: tiny:tiny-speecht5
    price: [{usd: 0.01, per: audio second}]
    parameters: {sample: {type: string, description: A voice.}}
    routes: [{pool: voices}]
  musicgen:
    tasks: [music]
    description: A tiny MusicGen.
    source: tiny:tiny-musicgen
    price: [{usd: 0.01, per: audio second}]
    parameters: {seconds: {type: number, default: 2, maximum: 30, priced: true}}
    routes: [{pool: voices}]
  whisper:
    tasks: [speech-to-text]
    description: A tiny Whisper.
    source: tiny:tiny-whisper
    price: [{usd: 0.001, per: audio second}]
    routes: [{pool: voices}]
"""
PATIENCE_S = 240.0
SAMPLE = encoded(voice(3, 120))
SAMPLE_URL = f"data:audio/wav;base64,{base64.b64encode(SAMPLE).decode()}"


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            absent(package)
    folder = tmp_path_factory.mktemp("voices")
    folder.chmod(0o711)
    catalog = folder / "catalog.yaml"
    catalog.write_text(CATALOG)
    with running_system(folder / "data", "--catalog", str(catalog), engines="speech") as running_now:
        running_now.wait_ready("vits", "speecht5", "musicgen", "whisper", within_s=LOAD_S)
        yield running_now


def length_s(data: bytes) -> float:
    """Decode a sound and measure it."""
    with av.open(io.BytesIO(data)) as container:
        return sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))


def call(system: System, model: str, given: dict[str, Any]) -> dict[str, Any]:
    """Make a request by the native API and wait for its end; checks that nothing is held and that phases are told."""
    account, key = system.account(f"{model}-{time.time_ns()}", "10")
    with system.client(key) as client:
        client.timeout = PATIENCE_S
        made = client.post("/v1/requests", json={"model": model, "input": given}, headers={"prefer": "wait=200"})
        assert made.status_code == 200, made.text
    told: dict[str, Any] = made.json()
    balance = system.balance(account)
    assert (balance["held_nanos"], balance["spent_nanos"]) == (0, told["charge_nanos"])
    return told


def fetch(system: System, told: dict[str, Any]) -> bytes:
    """Fetch the sound of a request by the address in its output."""
    with system.client() as client:
        answer = client.get(told["output"]["media"][0]["url"])
    assert answer.status_code == 200
    return answer.content


def test_vits_speaks_to_openais_client(voices: System) -> None:
    with openai.OpenAI(base_url=f"{voices.base_url}/v1", api_key=voices.api_key, max_retries=0) as client:
        answer = client.audio.speech.create(model="vits", input="A gate and a fare.", voice="alloy")
    assert length_s(answer.content) > 0.5


def test_music_is_as_long_as_asked_and_charged_to_the_millisecond(voices: System) -> None:
    told = call(voices, "musicgen", {"prompt": "rain", "seconds": 1.5, "response_format": "wav"})
    assert told["status"] == "succeeded"
    assert told["charge_nanos"] == 15_000_000
    assert length_s(fetch(voices, told)) == pytest.approx(1.5)


def test_a_voice_is_cloned_from_a_sample_in_the_call(voices: System) -> None:
    told = call(voices, "speecht5", {"input": "Hello there.", "sample": SAMPLE_URL, "response_format": "wav"})
    assert told["status"] == "succeeded", told
    spoken_s = length_s(fetch(voices, told))
    assert told["charge_nanos"] == pytest.approx(spoken_s * 10_000_000, abs=10_000)


def test_a_sound_is_transcribed_and_charged_by_its_length(voices: System) -> None:
    told = call(voices, "whisper", {"file": SAMPLE_URL, "timestamp_granularities": ["word", "segment"]})
    assert told["status"] == "succeeded", told
    assert told["output"]["text"]
    assert told["charge_nanos"] == 3_000_000


def test_a_sample_that_cannot_be_used_costs_nothing_and_is_named(voices: System) -> None:
    silent = base64.b64encode(encoded(voice(3, 120) * 0)).decode()
    account, key = voices.account(f"silent-{time.time_ns()}", "10")
    body = {"model": "speecht5", "input": {"input": "Hello.", "sample": f"data:audio/wav;base64,{silent}"}}
    with voices.client(key) as client:
        client.timeout = PATIENCE_S
        answer = client.post("/v1/requests", json=body, headers={"prefer": "wait=200"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"].startswith("sample: nothing can be heard")
    balance = voices.balance(account)
    assert (balance["held_nanos"], balance["spent_nanos"]) == (0, 0)
