"""Media inputs in every form that a caller may give them, to a real system: fetched, looked at, used and charged."""

from typing import Any

import httpx
import pytest

from tests.media.samples import data_url, film, picture, sound
from tests.media.websites import gives, leads_to, website
from tests.system import System


def submit(client: httpx.Client, model: str, **given: Any) -> httpx.Response:
    """Submit a native request and wait for it."""
    return client.post("/v1/requests", json={"model": model, "input": given}, headers={"prefer": "wait=60"})


def succeeded(answer: httpx.Response) -> dict[str, Any]:
    told: dict[str, Any] = answer.json()
    assert (answer.status_code, told.get("status")) == (200, "succeeded"), answer.text
    return told


@pytest.mark.parametrize(
    ("model", "given", "measured"),
    [
        ("picture", {"prompt": "x", "image": data_url(picture(80, 60))}, {"pixels": 4800}),
        ("picture", {"prompt": "x", "image": data_url(picture(80, 60, "JPEG"), "image/jpeg")}, {"pixels": 4800}),
        ("picture", {"prompt": "x", "image": data_url(picture(80, 60, "WEBP"), "text/html")}, {"pixels": 4800}),
        ("picture", {"images": [data_url(picture(80, 60)), data_url(picture())]}, {"pixels": 4800}),
        ("film", {"video": data_url(film()), "scale": 2}, {"video_ms": 1250}),
        ("film", {"video": data_url(film(20, "webm", "libvpx-vp9")), "scale": 2}, {"video_ms": 1250}),
        ("ear", {"file": data_url(sound())}, {"audio_ms": 2000}),
        ("ear", {"file": data_url(sound("flac", "flac"))}, {"audio_ms": 2000}),
        ("ear", {"file": data_url(sound("mp3", "mp3"))}, None),
        ("ear", {"file": data_url(sound("ogg", "libopus", rate=48_000))}, None),
        ("voice", {"input": "hello", "sample": data_url(sound("ipod", "aac"))}, {"characters": 5}),
    ],
)  # fmt: skip
def test_a_data_url_is_measured_and_used(
    taking_system: System, model: str, given: dict[str, Any], measured: dict[str, int] | None
) -> None:
    """Whatever it says that it is, what it is counts."""
    with taking_system.client() as client:
        told = succeeded(submit(client, model, **given))
    assert {name: told["usage"][name] for name in measured or {}} == (measured or {})


def test_an_address_is_fetched_without_anything_of_the_caller_or_of_ours(taking_system: System) -> None:
    with (
        website({"/a.png": gives(picture(), "text/plain"), "/to": leads_to("/a.png")}) as site,
        taking_system.client() as client,
    ):
        succeeded(submit(client, "picture", prompt="x", image=site.url("/to?x=1")))
        assert [path for path, _, _ in site.seen] == ["/to", "/a.png"]
        assert {authorization for _, _, authorization in site.seen} == {""}


def test_an_uploaded_file_is_named_by_its_id_as_often_as_wanted(taking_system: System) -> None:
    with taking_system.client() as client:
        file = client.post("/v1/files", files={"file": ("a.png", picture(80, 60))}, data={"purpose": "vision"}).json()
        for _ in range(2):
            assert succeeded(submit(client, "picture", prompt="x", image=file["id"]))["usage"]["pixels"] == 4800
        assert submit(client, "film", video=file["id"]).json()["error"]["code"] == "media_wrong_kind"


BAD: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("picture", {"image": data_url(b"hello")}, 400, "media_unreadable", "image"),
    ("picture", {"image": data_url(picture()[:60])}, 400, "media_unreadable", "image"),
    ("picture", {"image": data_url(film())}, 400, "media_wrong_kind", "image"),
    ("picture", {"image": data_url(picture()), "mask": data_url(sound())}, 400, "media_wrong_kind", "mask"),
    ("picture", {"images": [data_url(picture()), data_url(b"")]}, 400, "media_unreadable", "images[1]"),
    ("picture", {"image": "data:image/png,plain"}, 400, "invalid_request", "image"),
    ("picture", {"image": "data:image/png;base64,%%%"}, 400, "invalid_request", "image"),
    ("picture", {"image": "/etc/passwd"}, 400, "invalid_request", "image"),
    ("picture", {"image": "file:///etc/passwd"}, 400, "invalid_request", "image"),
    (
        "picture",
        {"image": {"blob": "a/b.png", "media_type": "image/png", "size_bytes": 1}},
        400,
        "invalid_request",
        "image",
    ),
    ("picture", {"image": "file_" + "0" * 32}, 404, "file_not_found", "image"),
    ("picture", {"image": "file_../../x"}, 404, "file_not_found", "image"),
    ("film", {"video": data_url(picture())}, 400, "media_wrong_kind", "video"),
    ("film", {"video": data_url(film()[:700])}, 400, "media_unreadable", "video"),
    ("film", {"video": data_url(film(1001))}, 422, "media_over_limit", "video"),
    ("ear", {"file": data_url(picture())}, 400, "media_wrong_kind", "file"),
    ("ear", {"file": data_url(film())}, 400, "media_wrong_kind", "file"),
    ("ear", {"file": data_url(sound(seconds=61, rate=8000))}, 422, "media_over_limit", "file"),
    ("voice", {"input": "x", "sample": data_url(b"RIFF0000WAVE")}, 400, "media_unreadable", "sample"),
]


@pytest.mark.parametrize(("model", "given", "status", "code", "param"), BAD)
def test_a_bad_input_is_refused_by_name_and_leaves_nothing(
    taking_system: System, model: str, given: dict[str, Any], status: int, code: str, param: str
) -> None:
    """Neither a hold nor a file: what was taken before the bad one is removed."""
    account, key = taking_system.account(f"bad-{model}-{id(given)}", "1")
    given = {"prompt": "x", **given} if model == "picture" and "images" not in given else given
    with taking_system.client(key) as client:
        answer = submit(client, model, **given)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param), answer.text
    balance = taking_system.balance(account)
    assert (balance["held_nanos"], balance["available_nanos"]) == (0, 10**9)


def stored(system: System, kind: str) -> set[str]:
    return {path.name for path in (system.data / "blobs").glob(f"[0-9]*/*/*/*{kind}*")}


def test_a_call_that_cannot_be_paid_leaves_no_file(taking_system: System) -> None:
    _, key = taking_system.account("poor in media", "0")
    before = stored(taking_system, "-in-")
    with taking_system.client(key) as client:
        answer = submit(client, "picture", prompt="x", image=data_url(picture(81, 61)))
    assert answer.status_code == 402
    assert stored(taking_system, "-in-") <= before


def test_a_repeat_of_an_idempotent_call_leaves_one_input(taking_system: System) -> None:
    before = stored(taking_system, "-in-")
    body = {"model": "picture", "input": {"prompt": "x", "image": data_url(picture(82, 62))}}
    headers = {"prefer": "wait=60", "idempotency-key": "an edit, once"}
    with taking_system.client() as client:
        first, again = (client.post("/v1/requests", json=body, headers=headers).json() for _ in range(2))
    assert first["id"] == again["id"]
    assert list(stored(taking_system, "-in-") - before) == [f"{first['id']}-in-0.png"]
