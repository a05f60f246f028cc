"""Calls for media: what they cost, who pays when they break off, and what is refused before anything is held."""

import base64
import io
import json
import time
from collections.abc import Iterator
from typing import Any

import av
import httpx
import pytest
from PIL import Image

from tests.flow.test_requests import events, finished
from tests.system import System

MARGIN_S = 60.0


def picture(size: tuple[int, int] = (48, 32), form: str = "png") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, form)
    return file.getvalue()


def film(seconds: int = 1) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", 8)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for _ in range(8 * seconds):
            container.mux(stream.encode(av.VideoFrame.from_image(Image.new("RGB", (32, 32), "blue"))))
        container.mux(stream.encode(None))
    return file.getvalue()


def data_url(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


IMAGE = data_url(picture(), "image/png")
FILM = data_url(film(), "video/mp4")
SOUND_BYTES = (
    b"RIFF\x24\x7d\x00\x00WAVEfmt \x10\0\0\0\1\0\1\0\x80\x3e\0\0\0\x7d\0\0\2\0\x10\0data\0\x7d\0\0" + b"\0\1" * 16_000
)
SOUND = data_url(SOUND_BYTES, "audio/wav")


@pytest.fixture(scope="module")
def caller(media_system: System) -> Iterator[tuple[httpx.Client, int]]:
    account, key = media_system.account(f"media-{time.time_ns()}", "100")
    with media_system.client(key) as client:
        yield client, account


NATIVE: list[tuple[str, dict[str, Any], int, dict[str, Any]]] = [
    ("fake-image", {"prompt": "a gate", "n": 2}, 20_000_000, {"width": 64, "height": 64, "media_type": "image/png"}),
    ("fake-image", {"image": IMAGE, "direction": "left"}, 10_000_000, {"width": 64}),
    ("fake-image", {"images": [IMAGE, IMAGE], "prompt": "x"}, 10_000_000, {"width": 64}),
    ("fake-upscale", {"image": IMAGE, "scale": 3}, 6_912_000, {"width": 144, "height": 96}),
    ("fake-video", {"prompt": "a gate", "seconds": 1.5}, 150_000_000, {"frames": 12, "duration_ms": 1_500}),
    ("fake-video", {"image": IMAGE, "size": "32x32"}, 100_000_000, {"width": 32, "media_type": "video/mp4"}),
    ("fake-video-upscale", {"video": FILM, "scale": 2}, 100_000_000, {"width": 64, "height": 64, "frames": 8}),
    (
        "fake-talking",
        {"image": IMAGE, "text": "Mind the gap, please"},
        100_000_000,
        {"width": 48, "duration_ms": 1_000},
    ),
    ("fake-voice", {"input": "Mind the gap."}, 195_000, {"duration_ms": 650, "media_type": "audio/wav"}),
    ("fake-clone", {"input": "Mind the gap.", "sample": SOUND}, 390_000, {"duration_ms": 650}),
    ("fake-music", {"prompt": "drums", "seconds": 2}, 20_000_000, {"duration_ms": 2_000}),
]


@pytest.mark.parametrize(
    ("model", "given", "charge", "known"), NATIVE, ids=[f"{row[0]}-{at}" for at, row in enumerate(NATIVE)]
)
def test_every_task_by_the_native_family_with_its_exact_charge(
    caller: tuple[httpx.Client, int], model: str, given: dict[str, Any], charge: int, known: dict[str, Any]
) -> None:
    client, _ = caller
    answer = client.post("/v1/requests", json={"model": model, "input": given}, headers={"prefer": "wait=60"})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["charge_nanos"] == charge
    assert told["hold_nanos"] >= charge
    media = told["output"]["media"]
    assert {name: media[0][name] for name in known} == known
    fetched = httpx.get(media[0]["url"], timeout=60.0)
    assert (fetched.status_code, len(fetched.content)) == (200, media[0]["size_bytes"])
    assert client.get(told["urls"]["output"]).content == fetched.content
    read = client.get(told["urls"]["get"]).json()
    assert [row["size_bytes"] for row in read["output"]["media"]] == [row["size_bytes"] for row in media]
    assert "forward;dur=" in answer.headers["server-timing"]


def test_a_transcript_and_a_ranking_by_the_native_family(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    wait = {"prefer": "wait=60"}
    heard = client.post("/v1/requests", json={"model": "fake-ears", "input": {"file": SOUND}}, headers=wait).json()
    assert heard["output"]["text"] == "the gate opens at"
    assert heard["output"]["segments"] == [{"start_ms": 0, "end_ms": 1_000, "text": "the gate opens at"}]
    assert heard["charge_nanos"] == 100_000
    given = {"query": "the gate", "documents": ["a wall", "the gate"]}
    ranked = client.post("/v1/requests", json={"model": "fake-rerank", "input": given}, headers=wait).json()
    assert ranked["output"]["results"][0] == {"index": 1, "relevance_score": 1.0}


def test_rerank_in_the_shape_of_cohere_jina_and_vllm(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    body = {
        "model": "fake-rerank",
        "query": "the gate",
        "documents": ["a wall", {"text": "the gate opens"}, "the sea"],
        "top_n": 2,
        "return_documents": True,
    }
    answer = client.post("/v1/rerank", json=body)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["results"] == [
        {"index": 1, "relevance_score": 1.0, "document": {"text": "the gate opens"}},
        {"index": 2, "relevance_score": 0.5, "document": {"text": "the sea"}},
    ]
    assert told["usage"]["total_tokens"] == told["meta"]["tokens"]["input_tokens"] == 9
    assert answer.headers["x-faregate-charge-nanos"] == str(told["usage"]["charge_nanos"]) == "2000000"
    bare = client.post("/v1/rerank", json={"model": "fake-rerank", "query": "x", "documents": ["x"]}).json()
    assert bare["results"] == [{"index": 0, "relevance_score": 1.0}]


def progress_seen(client: httpx.Client, request_id: str) -> list[float]:
    """Look at a request again and again, until it has got on, or has ended."""
    seen: list[float] = []
    end = time.monotonic() + MARGIN_S
    while not seen or seen[-1] < 0.3:
        assert time.monotonic() < end
        shown = client.get(f"/v1/requests/{request_id}").json()
        if shown["finished_at"]:
            break
        seen.append(shown.get("progress") or 0.0)
    return seen


def test_progress_is_told_in_events_and_views(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    given = {"model": "fake-image-slow", "input": {"prompt": "x", "steps": 12}}
    for _ in range(5):  # it may be over before it is looked at, on a machine that stands still for a moment
        request_id = client.post("/v1/requests", json=given).json()["id"]
        if seen := [fraction for fraction in progress_seen(client, request_id) if 0.3 <= fraction < 1]:
            break
    assert seen
    told = events(client, request_id)
    fractions = [data["fraction"] for _, name, data in told if name == "progress"]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert told[-1][2]["output"]["media"][0]["width"] == 64  # type: ignore[index]


def test_a_running_image_that_is_cancelled_costs_the_steps_it_ran(media_system: System) -> None:
    account, key = media_system.account(f"canceller-{time.time_ns()}", "1")
    with media_system.client(key) as client:
        given = {"model": "fake-image-slow", "input": {"prompt": "x", "steps": 400}}
        request_id = client.post("/v1/requests", json=given).json()["id"]
        end = time.monotonic() + MARGIN_S
        while not client.get(f"/v1/requests/{request_id}").json().get("progress"):
            assert time.monotonic() < end
            time.sleep(0.05)
        client.post(f"/v1/requests/{request_id}/cancel")
        shown = finished(client, request_id)
    assert shown["status"] == "cancelled"
    steps = shown["usage"]["steps"]  # type: ignore[index]
    assert 1 <= steps < 400
    assert shown["charge_nanos"] == steps * 1_000_000
    assert media_system.balance(account)["held_nanos"] == 0


def test_a_running_video_that_is_thrown_away_is_stopped(media_system: System) -> None:
    account, key = media_system.account(f"thrower-{time.time_ns()}", "1")
    with media_system.client(key) as client:
        video = client.post("/v1/videos", json={"model": "fake-video-slow", "prompt": "fake:sleep=50"}).json()
        end = time.monotonic() + MARGIN_S
        while (shown := client.get(f"/v1/videos/{video['id']}").json())["status"] != "in_progress":
            assert time.monotonic() < end
            time.sleep(0.05)
        assert 0 <= shown["progress"] < 100
        assert client.delete(f"/v1/videos/{video['id']}").json()["deleted"]
        assert client.get(f"/v1/videos/{video['id']}").status_code == 404
        assert client.get(f"/v1/requests/{video['id']}").json()["status"] == "cancelled"
    assert media_system.balance(account)["held_nanos"] == 0


def test_a_caller_who_leaves_an_image_stops_it(media_system: System) -> None:
    account, key = media_system.account(f"leaver-{time.time_ns()}", "1")
    with media_system.client(key) as client, pytest.raises(httpx.ReadTimeout):
        client.post("/v1/images/generations", json={"model": "fake-image-slow", "prompt": "x"}, timeout=1.0)
    end = time.monotonic() + MARGIN_S
    while (shown := media_system.balance(account))["held_nanos"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert shown["spent_nanos"] < 30_000_000


def test_waiting_that_is_over_is_answered_202_and_the_request_goes_on(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    body = {"model": "fake-image-slow", "prompt": "x", "steps": 20}
    answer = client.post("/v1/images/generations", json=body, headers={"prefer": "wait=1"})
    assert answer.status_code == 202
    told = answer.json()
    assert told["object"] == "request"
    assert answer.headers["location"] == told["urls"]["get"]
    shown = finished(client, told["id"])
    assert shown["status"] == "succeeded"
    assert shown["charge_nanos"] == 20_000_000


def test_a_form_is_repeated_by_its_contents_whatever_its_boundary(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    headers = {"idempotency-key": f"edit-{time.time_ns()}"}

    def edit(prompt: str, colour: bytes) -> httpx.Response:
        data = {"model": "fake-image", "prompt": prompt}
        return client.post("/v1/images/edits", data=data, files={"image": ("a.png", colour)}, headers=headers)

    first, again = edit("x", picture()), edit("x", picture())
    assert first.status_code == again.status_code == 200
    assert first.headers["x-request-id"] == again.headers["x-request-id"]
    assert first.json()["data"] == again.json()["data"]
    assert edit("y", picture()).status_code == 422
    assert edit("x", picture((8, 8))).status_code == 422


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/images/generations", {"model": "fake-image"}, "prompt"),
    ("/v1/images/generations", {"model": "fake-image", "prompt": "x", "n": 11}, "n"),
    ("/v1/images/generations", {"model": "fake-image", "prompt": "x", "size": "axb"}, "size"),
    ("/v1/images/generations", {"model": "fake-image", "prompt": "x", "output_format": "gif"}, "output_format"),
    ("/v1/images/generations", {"model": "fake-image", "prompt": "x", "partial_images": 9}, "partial_images"),
    ("/v1/images/generations", {"model": "fake-image", "prompt": "x", "wings": 2}, "wings"),
    ("/v1/images/generations", {"model": "fake-ears", "prompt": "x"}, "model"),
    ("/v1/images/edits", {"model": "fake-image", "prompt": "x"}, "image"),
    ("/v1/images/edits", {"model": "fake-image", "prompt": "x", "image": "data:image/png;base64,AAAA"}, "image"),
    ("/v1/images/edits", {"model": "fake-image", "prompt": "x", "image": "http://127.0.0.1/a.png"}, "image"),
    ("/v1/images/edits", {"model": "fake-image", "prompt": "x", "image": "file_" + "0" * 32}, "image"),
    ("/v1/images/edits", {"model": "fake-image", "prompt": "x", "image": [IMAGE, IMAGE], "mask": IMAGE}, "mask"),
    ("/v1/images/edits", {"model": "fake-image", "image": IMAGE, "mask": IMAGE}, "prompt"),
    ("/v1/images/edits", {"model": "fake-upscale", "image": IMAGE, "scale": 2, "direction": "left"}, "scale"),
    ("/v1/images/variations", {"model": "fake-upscale", "image": IMAGE}, "model"),
    ("/v1/audio/transcriptions", {"model": "fake-ears", "file": IMAGE}, "file"),
    ("/v1/audio/transcriptions", {"model": "fake-ears", "file": SOUND, "response_format": "html"}, "response_format"),
    (
        "/v1/audio/transcriptions",
        {"model": "fake-ears", "file": SOUND, "stream": True, "response_format": "srt"},
        "response_format",
    ),
    ("/v1/audio/translations", {"model": "fake-ears"}, "file"),
    ("/v1/audio/speech", {"model": "fake-clone", "input": "x", "voice": "alloy"}, "model"),
    ("/v1/audio/speech", {"model": "fake-clone", "input": "x", "sample": "data:audio/wav;base64,AAAA"}, "sample"),
    ("/v1/videos", {"model": "fake-video"}, "prompt"),
    ("/v1/videos", {"model": "fake-video", "prompt": "x", "seconds": "long"}, "seconds"),
    ("/v1/videos", {"model": "fake-video", "prompt": "x", "seconds": "-1"}, "seconds"),
    ("/v1/videos", {"model": "fake-video", "prompt": "x", "input_reference": {}}, "input_reference"),
    ("/v1/videos", {"model": "fake-video", "prompt": "x", "input_reference": FILM}, "image"),
    ("/v1/rerank", {"model": "fake-rerank", "query": "x", "documents": []}, "documents"),
    ("/v1/rerank", {"model": "fake-rerank", "query": "x", "documents": ["x"], "top_n": 0}, "top_n"),
]


@pytest.mark.parametrize(("path", "body", "field"), BAD, ids=[f"{row[0]}-{row[2]}-{at}" for at, row in enumerate(BAD)])
def test_bad_input_is_refused_by_name_and_nothing_is_held(
    caller: tuple[httpx.Client, int], media_system: System, path: str, body: dict[str, Any], field: str
) -> None:
    client, account = caller
    answer = client.post(path, json=body)
    assert answer.status_code in (400, 404, 422), answer.text
    assert answer.json()["error"]["param"] == field, answer.text
    assert media_system.balance(account)["held_nanos"] == 0


@pytest.mark.parametrize("blob", ["2026/11/21/req_" + "0" * 32 + "-1.png", "../../etc/passwd"])
def test_nobody_names_a_stored_file_directly(caller: tuple[httpx.Client, int], blob: str) -> None:
    client, _ = caller
    media = {"blob": blob, "media_type": "image/png", "size_bytes": 1, "width": 8, "height": 8}
    named = client.post("/v1/images/edits", json={"model": "fake-image", "prompt": "x", "image": media})
    assert named.status_code == 400
    native = client.post("/v1/requests", json={"model": "fake-upscale", "input": {"image": media}})
    assert native.status_code == 400


@pytest.mark.parametrize(
    "path", ["/v1/images/generations", "/v1/images/edits", "/v1/videos", "/v1/audio/transcriptions"]
)
def test_strangers_are_refused_before_their_files_are_read(media_system: System, path: str) -> None:
    with media_system.client("wrong") as client:
        answer = client.post(path, data={"model": "fake-image", "prompt": "x"}, files={"image": b"x" * 100})
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"


def test_another_accounts_video_looks_like_none(caller: tuple[httpx.Client, int], media_system: System) -> None:
    client, _ = caller
    video = client.post("/v1/videos", json={"model": "fake-video", "prompt": "x"}).json()
    finished(client, video["id"])
    _, key = media_system.account(f"stranger-{time.time_ns()}", "1")
    with media_system.client(key) as stranger:
        for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", ""), ("POST", "/remix")):
            answer = stranger.request(method, f"/v1/videos/{video['id']}{path}", json={"prompt": "x"})
            assert answer.status_code == 404, (method, path)
        assert stranger.get("/v1/videos").json()["data"] == []
    assert client.get(f"/v1/videos/{video['id']}/content").status_code == 200


def test_a_video_says_when_to_look_again_and_what_it_cost(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    asked = client.post("/v1/videos", json={"model": "fake-video", "prompt": "x", "metadata": {"order": "7"}})
    assert asked.status_code == 200
    assert int(asked.headers["openai-poll-after-ms"]) >= 250
    assert asked.json()["status"] in ("queued", "in_progress")
    native = finished(client, asked.json()["id"])
    assert native["metadata"] == {"order": "7"}
    shown = client.get(f"/v1/videos/{asked.json()['id']}")
    assert shown.headers["x-faregate-charge-nanos"] == "100000000"
    assert "forward;dur=" in shown.headers["server-timing"]
    part = client.get(f"/v1/videos/{asked.json()['id']}/content", headers={"range": "bytes=0-99"})
    assert (part.status_code, len(part.content)) == (206, 100)
    assert client.get(f"/v1/videos/{asked.json()['id']}/content?variant=sound").status_code == 400
    assert client.get("/v1/videos?limit=1000").status_code == 400


def test_a_stream_that_fails_before_its_first_byte_is_a_plain_error(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    body = {"model": "fake-image", "prompt": "fake:refuse", "stream": True}
    answer = client.post("/v1/images/generations", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "refused_by_engine"


def test_a_streamed_image_carries_its_bytes_once(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    body = {"model": "fake-image", "prompt": "x", "stream": True, "n": 2, "size": "128x128"}
    answer = client.post("/v1/images/generations", json=body)
    frames = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert [frame["index"] for frame in frames] == [0, 1]
    assert "usage" not in frames[0]
    assert frames[1]["usage"]["charge_nanos"] == 20_000_000
    assert Image.open(io.BytesIO(base64.b64decode(frames[1]["b64_json"]))).size == (128, 128)


def test_the_books_are_right_after_all_that(media_system: System) -> None:
    verified = media_system.run("books", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
