"""Fields that no OpenAI body has are left for the model to know; whatever else is wrong is refused as ever."""

from typing import Any

import msgspec
import pytest

from gateway.errors import InvalidRequest
from gateway.http.openai.bodies import ChatBody, CompletionBody, EmbeddingBody, SpeechBody
from gateway.http.openai.extra import decode_open
from gateway.http.openai.media_bodies import (
    ImageBody,
    ImageEditBody,
    ImageVariationBody,
    RemixBody,
    RerankBody,
    TranscriptionBody,
    VideoBody,
)
from gateway.http.openai.offers import given_in
from gateway.http.openai.parse import Received
from gateway.http.openai.speech import SpeechFamily
from gateway.http.openai.video_calls import VideoFamily
from gateway.http.raw import Head

BODIES: list[tuple[Any, dict[str, Any]]] = [
    (ChatBody, {"messages": [{"role": "user", "content": "x"}]}),
    (CompletionBody, {"prompt": "x"}),
    (EmbeddingBody, {"input": "x"}),
    (RerankBody, {"query": "x", "documents": ["y"]}),
    (SpeechBody, {"input": "x"}),
    (ImageBody, {"prompt": "x"}),
    (ImageEditBody, {"image": "https://a.example/x"}),
    (ImageVariationBody, {"image": "https://a.example/x"}),
    (TranscriptionBody, {"file": "file_1"}),
    (VideoBody, {"prompt": "x"}),
]


def read(kind: Any, given: dict[str, Any]) -> Any:
    return decode_open(msgspec.json.Decoder(kind), msgspec.json.encode({"model": "m"} | given))


@pytest.mark.parametrize(("kind", "given"), BODIES)
def test_every_body_of_an_input_leaves_them(kind: Any, given: dict[str, Any]) -> None:
    assert read(kind, given).extra is None
    loose = {"cfg": 0.5, "camera": {"pan": [1, None, "\u00fc"]}}
    assert read(kind, given | loose).extra == loose
    assert read(kind, given | loose | {"extra": {"cfg": 1, "mood": "kind"}}).extra == {**loose, "mood": "kind"}
    assert read(kind, given | {"cfg": 1, "extra": None}).extra == {"cfg": 1}


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"cfg": 1, "temperature": 3}, "temperature"),
        ({"cfg": 1, "messages": [{"role": "user", "content": "x", "mood": 1}]}, "messages[0].mood"),
        ({"cfg": 1, "messages": []}, "messages"),
        ({"cfg": 1, "extra": 7}, "extra"),
        ({"cfg": 1, "stream_options": {"loud": True}}, "stream_options.loud"),
    ],
)
def test_what_else_is_wrong_is_still_named(given: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(ChatBody, BODIES[0][1] | given)
    assert caught.value.param == param


@pytest.mark.parametrize(
    "text",
    [
        b'{"model": "m", "prompt": "x", "cfg": 1, "cfg": 2}',
        b'{"model": "m", "prompt": "x", "cfg": {"a": 1, "a": 2}}',
        b'{"model": "m", "prompt": "x", "cfg": 1',
        b'{"model": "m", "prompt": "x", "cfg": "\xff"}',
        b'{"model": "m", "prompt": "x", "cfg": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_what_is_no_body_is_refused_as_ever(text: bytes) -> None:
    with pytest.raises(InvalidRequest):
        decode_open(msgspec.json.Decoder(ImageBody), text)


def test_a_body_without_an_input_takes_none() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(RemixBody, {"prompt": "x", "cfg": 1, "model": None})
    assert caught.value.code == "unknown_field"


HEAD = Head("", "", "", -1)


def received() -> Received:
    return Received(HEAD, {"headers": []}, b"")  # type: ignore[typeddict-item,arg-type]


def carried(call: Any) -> list[tuple[str, Any]]:
    return [(task, value.extra) for task, value in ((call.task, call.input), *call.others)]


def test_calls_for_media_carry_them_in_whatever_they_may_mean() -> None:
    asked = read(VideoBody, {"prompt": "x", "image": "https://a.example/x", "cfg": 1})
    call, _ = VideoFamily().read(received(), asked)
    assert carried(call) == [("image-to-video", {"cfg": 1}), ("talking-head", {"cfg": 1})]
    asked = read(SpeechBody, {"input": "x", "voice": "file_1", "stability": 0.5})
    call, _ = SpeechFamily().read(received(), asked)
    assert carried(call) == [("voice-clone", {"stability": 0.5}), ("text-to-speech", {"stability": 0.5})]
    assert given_in(read(ImageBody, {"prompt": "x", "mood": 1}), ("text-to-image",)) == {
        "prompt": "x",
        "extra": {"mood": 1},
    }
