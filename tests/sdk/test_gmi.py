"""GMI's request queue: its callers' `curl` with only the host changed, and the vendor's own package."""

import importlib
import io
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import jwt
import pytest
from PIL import Image

from tests.sdk.secured import Secured

WITHIN_S = 60.0
QUEUE = "/api/v1/ie/requestqueue/apikey"
KEYS = [
    "request_id",
    "org_id",
    "user_id",
    "model",
    "status",
    "is_public",
    "payload",
    "outcome",
    "created_at",
    "updated_at",
    "queued_at",
]


@pytest.fixture
def caller(dialects: Secured) -> Iterator[httpx.Client]:
    with caller_of(dialects, dialects.system.api_key) as made:
        yield made


def caller_of(dialects: Secured, key: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {key}"}
    trusted = ssl.create_default_context()
    return httpx.Client(base_url=f"{dialects.url}{QUEUE}", headers=headers, timeout=60, verify=trusted)


def polled(caller: httpx.Client, request_id: str) -> dict[str, Any]:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        record: dict[str, Any] = caller.get(f"/requests/{request_id}").json()
        if record["status"] in ("success", "failed", "cancelled"):
            return record
        time.sleep(0.05)
    raise AssertionError(f"{request_id} did not end")


def png(size: tuple[int, int] = (48, 32)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, "png")
    return file.getvalue()


def test_a_video_is_asked_for_in_its_vendors_names_and_polled(caller: httpx.Client) -> None:
    payload = {"prompt": "a gate", "durationSeconds": "2", "aspectRatio": "4:3"}
    made = caller.post("/requests", json={"model": "fake-veo", "payload": payload})
    assert (made.status_code, made.json()["status"]) == (200, "queued")
    record = polled(caller, made.json()["request_id"])
    assert list(record)[: len(KEYS)] == KEYS
    assert (record["status"], record["payload"]) == ("success", payload)
    assert record["created_at"] <= record["updated_at"] <= time.time() + 1
    outcome = record["outcome"]
    assert outcome["media_urls"] == [{"id": "0", "url": outcome["video_url"]}]
    assert outcome["duration_ms"] == 2000
    assert record["charge_nanos"] == 200_000_000
    trusted = ssl.create_default_context()
    assert httpx.get(outcome["video_url"], verify=trusted, timeout=60).headers["content-type"] == "video/mp4"
    thumbnail = httpx.get(outcome["thumbnail_image_url"], verify=trusted, timeout=60)
    assert thumbnail.headers["content-type"] == "image/jpeg"


def test_images_and_sound_have_outcomes_of_their_own(caller: httpx.Client) -> None:
    asked = {"model": "fake-image", "payload": {"prompt": "a gate", "max_images": 2}}
    record = caller.post("/requests", json=asked, headers={"prefer": "wait=60"}).json()
    assert [item["id"] for item in record["outcome"]["media_urls"]] == ["0", "1"]
    assert record["outcome"]["thumbnail_image_url"] == record["outcome"]["media_urls"][0]["url"]
    asked = {"model": "fake-voice", "payload": {"text": "Mind the gap.", "voice_id": "x", "format": "mp3"}}
    record = polled(caller, caller.post("/requests", json=asked).json()["request_id"])
    assert record["outcome"]["audio_url"] == record["outcome"]["media_urls"][0]["url"]
    assert record["outcome"]["duration_ms"] > 0


def test_a_request_is_cancelled(caller: httpx.Client) -> None:
    asked = {"model": "fake-video-slow", "payload": {"prompt": "fake:sleep=50"}}
    request_id = caller.post("/requests", json=asked).json()["request_id"]
    assert caller.delete(f"/requests/{request_id}").status_code == 200
    record = polled(caller, request_id)
    assert (record["status"], record["outcome"]["error"]) == ("cancelled", "The request was cancelled.")


def test_a_failed_request_says_why(caller: httpx.Client) -> None:
    asked = {"model": "fake-veo", "payload": {"prompt": "fake:fail"}}
    record = polled(caller, caller.post("/requests", json=asked).json()["request_id"])
    assert (record["status"], record["charge_nanos"]) == ("failed", 0)
    assert record["outcome"]["error"] == record["error"]


def test_errors_are_texts(caller: httpx.Client, dialects: Secured) -> None:
    def said(answer: httpx.Response) -> tuple[int, str]:
        assert isinstance(answer.json()["error"], str)
        return answer.status_code, answer.json()["error"]

    status, text = said(caller.post("/requests", json={"model": "fake-veo", "payload": {"prompt": "a", "url": "x"}}))
    assert status == 400
    assert "url" in text
    assert said(caller.post("/requests", json={"model": "x", "payload": {"prompt": "a"}}))[0] == 404
    assert said(caller.post("/requests", json={"model": "fake-veo"}))[0] == 400
    assert said(caller.post("/requests", content=b"{"))[0] == 400
    assert said(caller.get("/requests/no-such"))[0] == 404
    assert said(caller.get("/requests?limit=0"))[0] == 400
    assert said(caller.get("/models/nothing"))[0] == 404
    with caller_of(dialects, "wrong") as stranger:
        assert said(stranger.get("/requests"))[0] == 401
    _, poor = dialects.system.account(f"poor-{time.time_ns()}", "0.00001")
    with caller_of(dialects, poor) as nobody:
        assert said(nobody.post("/requests", json={"model": "fake-veo", "payload": {"prompt": "a"}}))[0] == 402


def test_models_are_listed_by_name_and_shown_with_their_price(caller: httpx.Client) -> None:
    assert {"fake-veo", "fake-image"} <= set(caller.get("/models").json()["model_ids"])
    shown = caller.get("/models/fake-veo").json()
    assert (shown["model"], shown["model_type"], shown["host_type"]) == ("fake-veo", "text-to-video", "internal")
    assert shown["price_info"] == {"price": 0.1, "pricing_type": "video_second", "unit": "USD", "usd": "0.1"}


def test_requests_are_listed_and_counted_by_model(dialects: Secured) -> None:
    _, key = dialects.system.account(f"lister-{time.time_ns()}", "10")
    with caller_of(dialects, key) as caller:
        ids = [
            caller.post("/requests", json={"model": model, "payload": {"prompt": "a"}}).json()["request_id"]
            for model in ("fake-veo", "fake-image", "fake-veo")
        ]
        for each in ids:
            polled(caller, each)
        listed = caller.get("/requests").json()
        assert ([record["request_id"] for record in listed["requests"]], listed["total"]) == (ids[::-1], 3)
        for name in ("model", "model_id"):
            some = caller.get("/requests", params={name: "fake-veo", "limit": 1}).json()
            assert ([record["request_id"] for record in some["requests"]], some["total"]) == ([ids[2]], 2)
        rest = caller.get("/requests", params={"after": ids[1]}).json()
        assert [record["request_id"] for record in rest["requests"]] == [ids[0]]


@pytest.mark.parametrize(
    ("kind", "said"), [("png", "image/png"), ("jpg", "image/jpg"), ("jpeg", "image/jpeg"), ("mp3", "audio/mp3")]
)
def test_a_file_is_put_where_it_was_told_to_and_named_by_its_public_address(
    caller: httpx.Client, kind: str, said: str
) -> None:
    given = caller.post("/upload-url", json={"file_type": kind}).json()
    trusted = ssl.create_default_context()
    with httpx.Client(verify=trusted, timeout=60) as anybody:
        headers = {"content-type": said}
        wrong = anybody.put(given["upload_url"], content=png(), headers={"content-type": "image/webp"})
        assert wrong.status_code == 403
        assert anybody.put(given["upload_url"] + "0", content=png(), headers=headers).status_code == 403
        other = given["upload_url"].replace("account=1", "account=2")
        assert anybody.put(other, content=png(), headers=headers).status_code == 403
        assert anybody.put(given["upload_url"], content=png(), headers=headers).status_code == 200
        assert anybody.put(given["upload_url"], content=png(), headers=headers).status_code == 403
        assert anybody.get(given["public_url"]).status_code == 401
    payload = {"prompt": "blue", "img_url": given["public_url"]}
    asked = {"model": "fake-image", "payload": payload}
    record = caller.post("/requests", json=asked, headers={"prefer": "wait=60"}).json()
    assert record["status"] == "success", record
    assert record["payload"] == payload
    assert caller.get(given["public_url"]).content == png()


def test_an_upload_of_another_account_names_nothing(caller: httpx.Client, dialects: Secured) -> None:
    given = caller.post("/upload-url", json={"file_type": "png"}).json()
    with httpx.Client(verify=ssl.create_default_context(), timeout=60) as anybody:
        anybody.put(given["upload_url"], content=png(), headers={"content-type": "image/png"})
    _, key = dialects.system.account(f"thief-{time.time_ns()}", "10")
    with caller_of(dialects, key) as thief:
        asked = {"model": "fake-image", "payload": {"prompt": "a", "image": given["public_url"]}}
        assert thief.post("/requests", json=asked).status_code == 404


# The package `gmicloud` signs in with e-mail and password at a host that it has written down, and knows no setting for
# another: the constant is all that is changed here.


@pytest.fixture
def gmicloud(dialects: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = importlib.import_module("gmicloud")
    for name in ("iam", "video"):
        client = importlib.import_module(f"gmicloud._internal._client._{name}_client")
        monkeypatch.setattr(client, "IAM_SERVICE_BASE_URL", f"{dialects.url}/api/v1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", ssl.get_default_verify_paths().cafile or "")
    return module


@pytest.fixture
def signed_in(gmicloud: ModuleType, dialects: Secured) -> Any:
    return gmicloud.Client(email="me@example.com", password=dialects.system.api_key)


def test_the_vendors_package_signs_in_submits_and_polls(signed_in: Any) -> None:
    models = importlib.import_module("gmicloud._internal._models")
    videos = signed_in.video_manager
    assert {"fake-veo", "fake-image"} <= {model.model for model in videos.get_models()}
    detail = videos.get_model_detail("fake-veo")
    assert (detail.model, detail.model_type) == ("fake-veo", "text-to-video")
    asked = models.SubmitRequestRequest(model="fake-veo", payload={"prompt": "a gate", "duration": "1"})
    made = videos.create_request(asked)
    assert made.status.value == "queued"
    end = time.monotonic() + WITHIN_S
    while (shown := videos.get_request_detail(made.request_id)).status.value != "success":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert shown.outcome["video_url"]
    assert shown.payload == {"prompt": "a gate", "duration": "1"}
    assert made.request_id in [record.request_id for record in videos.get_requests("fake-veo")]
    assert "no such request" in videos.get_request_detail("x")["error"]


def test_a_session_is_gone_on_with_and_stands_for_its_key_alone(signed_in: Any, dialects: Secured) -> None:
    iam = signed_in.iam_client
    claims = jwt.decode(iam.get_access_token(), options={"verify_signature": False})
    assert (iam.get_user_id(), iam.get_organization_id()) == (claims["userId"], "1")
    assert dialects.system.api_key not in str(claims)
    before = iam.get_refresh_token()
    assert iam.refresh_token()
    assert signed_in.video_manager.get_models()
    for wrong in (iam.get_access_token() + "x", before, iam.get_access_token()[:-20], "ey.ey.ey", "eyJ"):
        with caller_of(dialects, wrong) as stranger:
            assert stranger.get("/models").status_code == 401
    trusted = ssl.create_default_context()
    with httpx.Client(base_url=f"{dialects.url}/api/v1/me", verify=trusted, timeout=60) as anybody:
        renewed = anybody.post("/auth-tokens", json={"email": "me", "password": iam.get_access_token()})
        assert renewed.status_code == 401
        assert anybody.patch("/sessions", json={"refreshToken": iam.get_access_token()}).status_code == 401
        assert anybody.get("/profile").status_code == 401


def test_a_session_ends_with_its_key(gmicloud: ModuleType, dialects: Secured) -> None:
    account_id, key = dialects.system.account(f"leaver-{time.time_ns()}", "10")
    session = gmicloud.Client(email=f"leaver-{time.time_ns()}@example.com", password=key)
    assert session.video_manager.get_models()
    with dialects.system.admin() as admin:
        [kept] = admin.get("/admin/api/keys", params={"account": account_id}).json()["keys"]
        assert admin.post(f"/admin/api/keys/{kept['id']}/revoke").status_code == 200
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        with caller_of(dialects, session.iam_client.get_access_token()) as caller:
            if caller.get("/models").status_code == 401:
                break
        time.sleep(0.1)
    else:
        raise AssertionError("the session outlives its key")
    assert not session.iam_client.refresh_token()


def test_a_wrong_password_is_refused(gmicloud: ModuleType) -> None:
    errors = importlib.import_module("gmicloud._internal._exceptions")
    with pytest.raises(errors.UnauthorizedError):
        gmicloud.Client(email="me@example.com", password="fg_live_" + "A" * 43)
