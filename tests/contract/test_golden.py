"""The bytes that gateways, workers and settlers of different releases exchange may only grow at the end.

A rolling update runs old and new processes side by side: what one release writes the other must read. Where a test
here fails, that is broken. Append fields with defaults; never move, retype or drop one.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.contract import events, inputs, pools, request
from gateway.contract.events import Ended, Frame
from gateway.contract.inputs.text import Message
from gateway.contract.phases import PHASE_NAMES, Phases
from gateway.contract.states import OUTCOMES, REASONS
from gateway.contract.units import UNIT_NAMES, Units

ID = "req_019a0000000070008000000000000001"
UNITS = Units(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
PHASES = Phases(1, 2, 3, 4, 5, 6, 7)
TOOL_CALL = events.ToolCallDelta(0, "call_1", "f", "{}")
LOGPROB = events.TokenLogprob("hi", -0.5, [("ho", -1.5)])
CHOICE = events.Choice("hi", "stop", "thought", [LOGPROB], [TOOL_CALL])
TEXT = events.TextOutput([CHOICE])
OLD_STEP = events.Step("speech", "m", ID, "p", "w", 1, "succeeded", "done", UNITS, PHASES)
STEP = msgspec.structs.replace(OLD_STEP, upstream=True, cost_nanos=5, estimated=True, detail="d", gpu_us=8)
ENDED = Ended(ID, 2, "succeeded", "done", UNITS, PHASES, 9, "w", "gw", TEXT, "detail", True, [STEP], ID, "p2", 7)
SETTLED = events.Settled(ID, "failed", "engine_error", 5, 6, UNITS, PHASES, 2)
LEG = request.Leg("p2", "m2", 10, b"\x81", ["up"])
REQUEST = request.Request(ID, 7, "m", "chat", b"\x80", 9, "gw", True, True, 123, 456, ID, ["up"], [LEG], [STEP])
TARGET = pools.Target(upstream="up", model="wire", order=1, weight=2, fields={"seconds": "duration"}, fixed={"a": 1})
SPEC = pools.PoolSpec(
    pool="p",
    engine="fake",
    models=[pools.ServedModel(name="m", tasks=["chat"], source="s", options={"a": 1}, targets=[TARGET])],
    lease_ms=3000,
    attempts=2,
    upstreams=[pools.UpstreamSpec(name="up", protocol="openai", url="https://up", timeout_s=9, concurrency=3)],
)
STATUS = pools.WorkerStatus(
    worker="w",
    pool="p",
    engine="fake",
    pid=1,
    version="0.1",
    models={"m": pools.ModelState(state="ready", detail="d", context_tokens=8)},
    capacity=4,
    running=2,
    memory_bytes=3,
    draining=True,
    upstreams={"up": pools.UpstreamState(state="open", detail="d", error_rate=0.5, latency_ms=7)},
    times=pools.WorkerTimes(up_ms=9, load_ms=2, busy_ms=3),
)
CHAT = inputs.ChatInput(messages=[Message(role="user", content="hi")], max_tokens=3)

Codec = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]
EVENT: Codec = (events.encode_event, events.decode_event)
OUTPUT: Codec = (events.encode_output, events.decode_output)

FORMATS: dict[str, tuple[Any, Codec]] = {
    "started": (events.Started("w"), EVENT),
    "text delta": (events.TextDelta("hi", 2, 1, "stop", "thought", [LOGPROB], [TOOL_CALL]), EVENT),
    "audio delta": (events.AudioDelta(b"\x00\x01"), EVENT),
    "progress": (events.Progress(0.5), EVENT),
    "ended": (ENDED, EVENT),
    "settled": (SETTLED, EVENT),
    "text output": (TEXT, OUTPUT),
    "vector output": (events.VectorOutput([b"\x00\x00\x80?"], 1), OUTPUT),
    "image delta": (events.ImageDelta(b"\x89PNG", "image/png", 1, 2), EVENT),
    "gallery output": (events.GalleryOutput([events.MediaOutput("image/png", 4, b"", "b", 8, 6, 0, 0, 7)]), OUTPUT),
    "transcript output": (
        events.TranscriptOutput("hi", "en", 900, [events.Segment(0, 900, "hi")], [events.Segment(0, 900, "hi")]),
        OUTPUT,
    ),
    "ranking output": (events.RankingOutput([(1, 0.5), (0, 0.25)]), OUTPUT),
    "media output": (events.MediaOutput("audio/wav", 4, b"RIFF", "blob"), OUTPUT),
    "frames": ([Frame(ID, 2, 3, events.TextDelta("hi"))], (events.encode_frames, events.decode_frames)),
    "settlements": ([ENDED], (events.encode_ended, events.decode_ended)),
    "request": (REQUEST, (request.encode_request, request.decode_request)),
    "pool": (SPEC, (pools.encode_spec, pools.decode_spec)),
    "worker": (STATUS, (pools.encode_status, pools.decode_status)),
    "plan": (request.Plan("m", ["up"], [LEG]), (request.encode_plan, request.decode_plan)),
}
GOLDEN: dict[str, str] = json.loads((Path(__file__).parent / "golden.json").read_text())
EARLIER: dict[str, str] = json.loads((Path(__file__).parent / "golden_without_upstreams.json").read_text())
"""What was written before there were upstreams and several ways."""

_OLD_ENDED = msgspec.structs.replace(ENDED, steps=[OLD_STEP], pool="", gpu_us=0)
_OLD_MODELS = [msgspec.structs.replace(SPEC.models[0], targets=[])]
OLD: dict[str, Any] = {
    "ended": _OLD_ENDED,
    "settlements": [_OLD_ENDED],
    "request": msgspec.structs.replace(REQUEST, only=[], legs=[], steps=[]),
    "pool": msgspec.structs.replace(SPEC, models=_OLD_MODELS, upstreams=[]),
    "worker": msgspec.structs.replace(STATUS, upstreams={}, times=pools.WorkerTimes()),
}


def test_there_is_a_golden_record_of_each_format() -> None:
    assert sorted(GOLDEN) == sorted(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_as_agreed(name: str) -> None:
    value, (encode, _) = FORMATS[name]
    assert encode(value).hex() == GOLDEN[name]


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_written_by_this_release_is_read_back_whole(name: str) -> None:
    value, (_, decode) = FORMATS[name]
    assert decode(bytes.fromhex(GOLDEN[name])) == value


@pytest.mark.parametrize("name", EARLIER)
def test_what_an_earlier_release_wrote_is_read(name: str) -> None:
    _, (_, decode) = FORMATS[name]
    assert decode(bytes.fromhex(EARLIER[name])) == OLD[name]


@pytest.mark.parametrize("name", ["started", "text delta", "audio delta", "progress", "ended", "settled"])
def test_an_event_with_a_field_of_a_later_release_is_read(name: str) -> None:
    """The array of each event may be longer than this release knows."""
    later = [*msgspec.msgpack.decode(bytes.fromhex(GOLDEN[name])), "new"]
    assert events.decode_event(msgspec.msgpack.encode(later)) == FORMATS[name][0]


def test_a_request_with_a_field_of_a_later_release_is_read() -> None:
    later = [*msgspec.msgpack.decode(bytes.fromhex(GOLDEN["request"])), "new"]
    assert request.decode_request(msgspec.msgpack.encode(later)) == REQUEST


def test_an_event_without_the_fields_that_have_defaults_is_read() -> None:
    """An earlier release wrote shorter arrays."""
    assert events.decode_event(msgspec.msgpack.encode([2, "hi"])) == events.TextDelta("hi")
    head = msgspec.msgpack.decode(bytes.fromhex(GOLDEN["ended"]))[:8]
    assert events.decode_event(msgspec.msgpack.encode(head)) == Ended(ID, 2, "succeeded", "done", UNITS, PHASES, 9)


def test_what_a_worker_gets_as_input_is_what_the_caller_sent() -> None:
    for task, value in (
        ("chat", CHAT),
        ("completion", inputs.CompletionInput(prompt="p", stop=["a"])),
        ("embedding", inputs.EmbeddingInput(input=["a", "b"])),
        ("text-to-speech", inputs.SpeechInput(input="hi", speed=1.5)),
    ):
        packed = request.encode_input(value)
        whole = msgspec.structs.replace(REQUEST, task=task, input=packed)
        assert request.decode_input(request.decode_request(request.encode_request(whole))) == value


def test_stored_positions_do_not_move() -> None:
    """Postgres stores outcomes and reasons as their position, and has a column for each unit and phase."""
    assert OUTCOMES == ("succeeded", "failed", "cancelled", "expired")
    assert REASONS[:10] == (
        "done",
        "engine_error",
        "engine_lost",
        "refused_by_engine",
        "worker_lost",
        "gateway_lost",
        "client_gone",
        "cancelled_by_caller",
        "deadline",
        "queue_lost",
    )
    assert REASONS[10:15] == (
        "upstream_error",
        "upstream_timeout",
        "upstream_limited",
        "upstream_unknown",
        "blocked",
    )
    assert UNIT_NAMES[:5] == ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "characters")
    assert UNIT_NAMES[5:10] == ("images", "pixels", "steps", "audio_ms", "video_ms")
    assert PHASE_NAMES[:7] == ("queue", "load", "preprocess", "transfer", "forward", "postprocess", "store")
