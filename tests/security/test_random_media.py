"""Whatever is sent for media, as JSON or as forms, the answer is never a fault of ours, and no hold is left behind."""

import io
import random
import time
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image
from schemathesis.core import NOT_SET

from gateway.http.openai.bodies import SpeechBody
from gateway.http.openai.media_bodies import (
    ImageBody,
    ImageEditBody,
    ImageVariationBody,
    RerankBody,
    TranscriptionBody,
    VideoBody,
)
from tests.security.test_random_bodies import RAW, SCALARS, faults, settled
from tests.system import System, post_all

BODIES = 2_000
FORMS = 300

BODY_OF: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "/v1/images/generations": ("fake-image", ImageBody),
    "/v1/images/edits": ("fake-image", ImageEditBody),
    "/v1/images/variations": ("fake-image", ImageVariationBody),
    "/v1/audio/transcriptions": ("fake-ears", TranscriptionBody),
    "/v1/audio/translations": ("fake-ears", TranscriptionBody),
    "/v1/audio/speech": ("fake-voice", SpeechBody),
    "/v1/videos": ("fake-video", VideoBody),
    "/v1/rerank": ("fake-rerank", RerankBody),
}
FORM_PATHS = [path for path in BODY_OF if path not in ("/v1/rerank", "/v1/images/generations")]
NEEDED = ("prompt", "input", "query", "documents")


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (16, 16), "red").save(file, "png")
    return file.getvalue()


VALID: dict[str, Any] = {
    "prompt": "a gate",
    "input": "a gate",
    "n": 1,
    "size": "64x64",
    "seconds": "1",
    "fps": 8,
    "steps": 2,
    "seed": 7,
    "stream": False,
    "partial_images": 1,
    "response_format": "b64_json",
    "output_format": "png",
    "image": "data:image/png;base64,AAAA",
    "file": "data:audio/wav;base64,AAAA",
    "voice": "alloy",
    "sample": "file_" + "0" * 32,
    "input_reference": {"image_url": "https://127.0.0.1/x"},
    "query": "gate",
    "documents": ["a gate", {"text": "a wall"}],
    "timestamp_granularities": ["word"],
    "metadata": {"a": "b"},
    "max_price": "1",
}

MORE: tuple[Any, ...] = (
    {"blob": "x", "media_type": "image/png", "size_bytes": 1},
    "data:,",
    "data:image/png;base64,%%%",
    "http://[::1]/",
    "https://localhost/a.png",
    "file_x",
    "9999x9999",
    float("1e300"),
)


def mutated(draw: random.Random, path: str) -> dict[str, Any]:
    """Make a body that is right, or nearly so, or not at all."""
    model, kind = BODY_OF[path]
    known = [name for name in VALID if name in kind.__struct_fields__]
    body = {name: VALID[name] for name in known if draw.random() < (0.9 if name in NEEDED else 0.15)}
    body["model"] = model
    for _ in range(draw.randrange(3)):
        value = draw.choice([*SCALARS, *MORE])
        body[draw.choice([*body, "x", "metadata[a]"])] = draw.choice([value, [value, value]])
    return body


async def test_random_bodies_meet_no_fault_and_leave_no_hold(media_system: System) -> None:
    account, key = media_system.account(f"fuzz-media-{time.time_ns()}", "1000")
    draw = random.Random(20261122)
    calls = []
    for _ in range(BODIES):
        path = draw.choice(list(BODY_OF))
        raw = draw.random() < 0.05
        calls.append((path, draw.choice(RAW) if raw else msgspec.json.encode(mutated(draw, path))))
    statuses = await post_all(media_system, key, calls)
    assert await faults(media_system, key, calls, statuses) == []
    assert {200, 400} <= set(statuses)
    await settled(media_system, account)


async def test_random_forms_meet_no_fault_and_leave_no_hold(media_system: System) -> None:
    account, key = media_system.account(f"fuzz-forms-{time.time_ns()}", "1000")
    draw = random.Random(20261123)
    statuses = set()
    names = ("image", "image[]", "mask", "file", "sample", "input_reference", "video", "audio", "x")
    async with httpx.AsyncClient(base_url=media_system.base_url, timeout=60) as client:
        for _ in range(FORMS):
            path = draw.choice(FORM_PATHS)
            fields = {name: str(value) for name, value in mutated(draw, path).items() if name not in names}
            files: list[Any] = [
                (draw.choice(names), (draw.choice(["a.png", "", "../x"]), draw.choice([picture(), b"", b"\xff" * 99])))
                for _ in range(draw.randrange(3))
            ] or [("image", ("a.png", picture()))]
            answer = await client.post(path, data=fields, files=files, headers={"authorization": f"Bearer {key}"})
            assert answer.status_code < 500, (path, fields, answer.text)
            statuses.add(answer.status_code)
    assert {200, 400} <= statuses
    await settled(media_system, account)


@pytest.fixture(scope="module")
def described(media_system: System) -> Any:
    return schemathesis.openapi.from_url(f"{media_system.base_url}/openapi/openapi.json")


@pytest.mark.parametrize("path", BODY_OF)
def test_bodies_made_from_our_own_description_meet_no_fault(media_system: System, described: Any, path: str) -> None:
    operation = described[path]["POST"]

    @settings(max_examples=40, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=operation.as_strategy(), named=st.booleans())
    def check(case: Any, named: bool) -> None:
        if case.media_type != "application/json":
            return
        body = case.body if case.body is not NOT_SET else None
        if isinstance(body, dict) and named:
            body = body | {"model": BODY_OF[path][0]}
        with media_system.client() as client:
            answer = client.post(path, content=msgspec.json.encode(body), headers={"content-type": "application/json"})
        assert answer.status_code < 500, answer.text

    check()
