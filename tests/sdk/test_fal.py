"""fal-client, unmodified: it submits, waits, polls, streams, stops and uploads, and reads errors in its own words."""

import asyncio
import base64
import hashlib
import io
import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from PIL import Image

from tests.flow.locks import locked
from tests.sdk.broken_off import Forgetful, no_admission
from tests.sdk.secured import Secured
from tests.webhooks.receiver import Post, Receiver

PROMPT = {"prompt": "a gate"}

# The client leaves its connections for uploads open, and the collector finds them in whichever test comes later.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def fal(fal_client: ModuleType, dialects: Secured) -> Iterator[Any]:
    made = fal_client.SyncClient(key=dialects.system.api_key)
    yield made
    made._client.close()


def picture(colour: str = "red", size: tuple[int, int] = (48, 32)) -> Image.Image:
    return Image.new("RGB", size, colour)


def test_a_submitted_request_is_polled_and_read(fal: Any, fal_client: ModuleType, dialects: Secured) -> None:
    handle = fal.submit("fal-ai/flux/dev", PROMPT | {"num_images": 2, "image_size": {"width": 96, "height": 64}})
    assert handle.request_id.startswith("req_")
    base = f"{dialects.url}/fal/fal-ai/flux/requests/{handle.request_id}"  # without the rest of the path
    assert (handle.response_url, handle.status_url, handle.cancel_url) == (base, f"{base}/status", f"{base}/cancel")
    result = handle.get()
    assert [(item["width"], item["height"], item["content_type"]) for item in result["images"]] == [
        (96, 64, "image/png")
    ] * 2
    assert result["prompt"] == "a gate"
    assert result["timings"]["inference"] > 0
    assert isinstance(result["seed"], int)
    fetched = httpx.get(result["images"][1]["url"], timeout=60)
    assert Image.open(io.BytesIO(fetched.content)).size == (96, 64)
    assert len(fetched.content) == result["images"][1]["file_size"]
    done = handle.status(with_logs=True)
    assert isinstance(done, fal_client.Completed)
    assert done.metrics["inference_time"] > 0
    assert done.error is None
    assert done.logs is not None
    assert done.logs[-1]["message"] == "The request succeeded."
    assert handle.status().logs is None


def test_the_charge_and_the_units_stand_in_the_headers_of_the_result(fal: Any) -> None:
    handle = fal.submit("fal-ai/flux/dev", PROMPT | {"num_images": 3})
    handle.get()
    answer = fal._client.get(handle.response_url)
    assert answer.headers["x-fal-billable-units"] == "3"
    assert answer.headers["x-faregate-charge-nanos"] == "30000000"
    assert answer.headers["x-fal-request-id"] == handle.request_id


def test_a_subscriber_sees_the_queue_and_the_progress(fal: Any, fal_client: ModuleType) -> None:
    lines: list[str] = []
    while not any("% done" in line for line in lines) and len(lines) < 100:  # it may end between two looks
        seen: list[Any] = []
        ids: list[str] = []
        result = fal.subscribe(
            "faregate/fake-image-slow", PROMPT, with_logs=True, on_enqueue=ids.append, on_queue_update=seen.append
        )
        assert len(result["images"]) == 1
        assert ids[0].startswith("req_")
        assert isinstance(seen[-1], fal_client.Completed)
        running = [update for update in seen if isinstance(update, fal_client.InProgress)]
        lines += [line["message"] for update in running for line in update.logs or []]
    assert any("% done" in line for line in lines)


def test_requests_that_wait_tell_their_position(fal: Any, fal_client: ModuleType) -> None:
    handles = [fal.submit("faregate/fake-narrow", {"prompt": "fake:sleep=50", "seed": at}) for at in range(4)]
    end = time.monotonic() + 30
    while not isinstance(handles[0].status(), fal_client.InProgress):
        assert time.monotonic() < end
        time.sleep(0.05)
    positions = [status.position for handle in handles if isinstance(status := handle.status(), fal_client.Queued)]
    assert positions == [0, 1, 2]  # the first one runs
    for handle in handles:
        handle.cancel()
    for handle in handles:
        with pytest.raises(fal_client.client.FalClientHTTPError) as stopped:
            handle.get()
        assert (stopped.value.status_code, stopped.value.error_type) == (499, "client_cancelled")


def test_what_has_ended_cannot_be_stopped_and_what_never_was_is_not_found(fal: Any, fal_client: ModuleType) -> None:
    handle = fal.submit("fal-ai/flux/dev", PROMPT)
    handle.get()
    with pytest.raises(fal_client.client.FalClientHTTPError) as ended:
        handle.cancel()
    assert (ended.value.status_code, ended.value.response.json()["status"]) == (400, "ALREADY_COMPLETED")
    for call in (fal.cancel, fal.status, fal.result):
        with pytest.raises(fal_client.client.FalClientHTTPError) as missing:
            call("fal-ai/flux", "req_" + "0" * 32)
        assert missing.value.status_code == 404


def test_a_run_is_waited_for(fal: Any) -> None:
    result = fal.run("fal-ai/flux/dev", PROMPT | {"image_size": "square", "num_inference_steps": 4})
    assert (result["images"][0]["width"], result["images"][0]["height"]) == (512, 512)
    spoken = fal.run("fal-ai/any-llm", {"prompt": "Say something.", "system_prompt": "Be brief.", "max_tokens": 9})
    assert spoken["output"]
    assert spoken["usage"]["completion_tokens"] == 9
    assert spoken["usage"]["charge_nanos"] == 1_000_000


@pytest.mark.parametrize(
    ("app", "path", "arguments", "key"),
    [
        ("fal-ai/veo3", "", {"duration": "2s"}, "video"),
        ("fal-ai/veo3/image-to-video", "", {"duration": 1}, "video"),
        ("fal-ai/veo3", "image-to-video", {}, "video"),
        ("faregate/fake-music", "", {"seconds_total": 2}, "audio"),
        ("fake-voice", "", {}, "audio"),
    ],
)
def test_media_of_every_kind_by_any_name(
    fal: Any, fal_client: ModuleType, app: str, path: str, arguments: Any, key: str
) -> None:
    given = PROMPT | arguments
    if "image-to-video" in app + path:
        given["image_url"] = fal_client.encode_image(picture())
    made = fal.submit(app, given, path=path).get()[key]
    assert made["content_type"].startswith(key)
    assert httpx.get(made["url"], timeout=60).status_code == 200
    if "duration" in arguments:
        assert made["duration"] == pytest.approx(float(str(arguments["duration"]).rstrip("s")), abs=0.2)


def test_the_output_of_one_request_is_the_input_of_the_next(fal: Any, fal_client: ModuleType) -> None:
    drawn = fal.run("fal-ai/flux/dev", PROMPT)["images"][0]["url"]
    assert fal.subscribe("fal-ai/veo3", PROMPT | {"image_url": drawn})["video"]["content_type"] == "video/mp4"
    with pytest.raises(fal_client.client.FalClientHTTPError) as forged:
        fal.submit("fal-ai/veo3", PROMPT | {"image_url": drawn[:-1]})
    assert forged.value.status_code == 404


def test_text_is_streamed_as_it_comes(fal: Any) -> None:
    events = list(fal.stream("faregate/fake-stream", {"prompt": "Tell me."}))
    texts = [event["output"] for event in events]
    assert len(events) > 3
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))
    assert [event["partial"] for event in events] == [True] * (len(events) - 1) + [False]
    assert events[-1]["usage"]["completion_tokens"] == 100


def test_an_image_is_streamed_while_it_is_drawn(fal: Any) -> None:
    events = list(fal.stream("faregate/fake-image", PROMPT | {"partial_images": 2}))
    assert [event["images"][0]["url"].partition(":")[0] for event in events] == ["data", "data", "https"]


def test_the_status_is_streamed_to_the_end(fal: Any, dialects: Secured) -> None:
    handle = fal.submit("faregate/fake-image-slow", PROMPT)
    with fal._client.stream("GET", handle.status_url + "/stream", params={"logs": "1"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = [line for line in answer.iter_lines() if line.startswith("data: ")]
    assert '"COMPLETED"' in told[-1]
    assert any('"IN_PROGRESS"' in line for line in told)


@pytest.mark.parametrize("repository", ["fal_v3", "fal"])
def test_an_uploaded_file_is_taken_by_its_address(fal: Any, repository: Any, dialects: Secured, tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    picture(size=(32, 16)).save(path)
    url = fal.upload_file(path, repository=repository, fallback_repository=[])
    assert url.startswith(f"{dialects.url}/fal/")
    assert httpx.get(url, follow_redirects=True, timeout=60).content == path.read_bytes()
    result = fal.run("faregate/fake-image", PROMPT | {"image_url": url})
    assert len(result["images"]) == 1
    with dialects.system.client() as client:
        kept = client.get("/v1/files").json()["data"][0]
        assert (kept["filename"], kept["bytes"]) == ("red.png", path.stat().st_size)
    _, stranger = dialects.system.account(f"stranger-{time.time_ns()}", "1")
    refused = httpx.post(
        f"{dialects.url}/fal/run/fake-image",
        json=PROMPT | {"image_url": url},
        headers={"authorization": f"Key {stranger}"},
        timeout=60,
    )
    assert (refused.status_code, refused.json()["error_type"]) == (404, "file_not_found")


def test_a_large_file_comes_in_parts(
    fal: Any, fal_client: ModuleType, dialects: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fal_client.client, "MULTIPART_THRESHOLD", 1024)
    monkeypatch.setattr(fal_client.client, "MULTIPART_CHUNK_SIZE", 1_000_000)
    data = random.Random(7).randbytes(3_500_000)
    url = fal.upload(data, "application/octet-stream", "large.bin", lifecycle=fal_client.StorageSettings("1h"))
    assert httpx.get(url, follow_redirects=True, timeout=60).content == data
    with dialects.system.client() as client:
        kept = client.get("/v1/files").json()["data"][0]
    assert (kept["filename"], kept["bytes"], kept["expires_at"] - kept["created_at"]) == ("large.bin", len(data), 3600)
    begun = fal._client.post(f"{dialects.url}/fal/files/upload/multipart").json()
    below = f"{begun['access_url']}/multipart/{begun['uploadId']}"
    tag = fal._client.put(f"{below}/1", content=b"one").headers["etag"]
    for parts in ([(2, tag)], [(1, tag[:-2] + '"')], []):
        listed = {"parts": [{"partNumber": number, "etag": etag} for number, etag in parts]}
        assert fal._client.post(f"{below}/complete", json=listed).status_code == 422
    assert fal._client.put(f"{below[:-1]}/1", content=b"one").status_code == 404
    _, other = dialects.system.account(f"parts-{time.time_ns()}", "1")
    stranger = {"authorization": f"Key {other}"}
    assert httpx.put(f"{below}/1", content=b"one", headers=stranger, timeout=60).status_code == 404


def test_a_file_is_kept_as_long_as_it_is_asked_to_be(fal: Any, fal_client: ModuleType, dialects: Secured) -> None:
    lifecycle = fal_client.StorageSettings(expires_in="1h")
    for repository in ("fal_v3", "fal"):
        fal.upload(b"words", "text/plain", "words.txt", repository=repository, lifecycle=lifecycle)
        with dialects.system.client() as client:
            kept = client.get("/v1/files").json()["data"][0]
        assert kept["expires_at"] - kept["created_at"] == 3600


def test_an_address_for_one_upload_takes_no_other_name_and_no_forged_one(fal: Any, dialects: Secured) -> None:
    begun = fal._client.post(f"{dialects.url}/fal/storage/upload/initiate", json={"file_name": "a.txt"}).json()
    url = begun["upload_url"]
    for forged in (url.replace("a.txt", "b.txt"), url.replace("account=", "account=1"), url[:-1], url[:-64]):
        assert httpx.put(forged, content=b"x", timeout=60).status_code == 404
    assert httpx.put(url, content=b"x", timeout=60).status_code == 200
    assert httpx.put(url, content=b"another", timeout=60).status_code == 200
    assert httpx.get(begun["file_url"], follow_redirects=True, timeout=60).content == b"x"
    assert httpx.get(begun["file_url"].replace("/files/", "0/files/"), timeout=60).status_code == 404


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"prompt": "x", "api_base": "http://127.0.0.1"}, ["body", "api_base"]),
        ({"prompt": "x", "num_images": 99}, ["body", "num_images"]),
        ({"prompt": "x", "image_size": "huge"}, ["body", "image_size"]),
        ({"prompt": "x", "sync_mode": True}, ["body", "sync_mode"]),
        ({"prompt": "x", "guidance_scale": "high"}, ["body", "guidance_scale"]),
        ({}, ["body", "prompt"]),
    ],
)
def test_a_misfit_is_named_as_the_caller_wrote_it(
    fal: Any, fal_client: ModuleType, arguments: Any, place: list[str]
) -> None:
    for call in (fal.submit, fal.run):
        with pytest.raises(fal_client.client.FalClientHTTPError) as refused:
            call("fal-ai/flux/dev", arguments)
        assert refused.value.status_code == 422
        detail = refused.value.response.json()["detail"]
        assert [entry["loc"] for entry in detail] == [place]
        assert all(entry["msg"] and entry["type"] for entry in detail)


def test_errors_have_a_type(fal: Any, fal_client: ModuleType, dialects: Secured) -> None:
    error = fal_client.client.FalClientHTTPError
    for app in ("fal-ai/no-such", "fal-ai/flux/pro", "fal-ai/flux/dev/turbo", "fal-ai/flux/dev/image-to-video"):
        with pytest.raises(error) as unknown:
            fal.submit(app, PROMPT)
        assert (unknown.value.status_code, unknown.value.error_type) == (404, "model_not_found")
    stranger = fal_client.SyncClient(key="wrong")
    with pytest.raises(error) as unauthorized:
        stranger.submit("fal-ai/no-such", PROMPT)
    stranger._client.close()
    assert (unauthorized.value.status_code, unauthorized.value.error_type) == (401, "invalid_api_key")
    failed = fal.submit("fal-ai/any-llm", {"prompt": "fake:fail"})
    with pytest.raises(error) as broken:
        failed.get()
    assert (broken.value.status_code, broken.value.error_type) == (502, "runner_server_error")
    assert broken.value.response.headers["x-fal-request-id"] == failed.request_id
    status = failed.status(with_logs=True)
    assert (status.error_type, status.logs[-1]["level"]) == ("runner_server_error", "ERROR")


def test_a_deadline_of_the_caller_is_not_tried_again(fal_client: ModuleType, dialects: Secured) -> None:
    _, key = dialects.system.account(f"hurried-{time.time_ns()}", "1")
    client = fal_client.SyncClient(key=key)
    with pytest.raises(fal_client.client.FalClientHTTPError) as late:
        client.run("fal-ai/any-llm", {"prompt": "fake:sleep=30"}, start_timeout=2)
    assert (late.value.status_code, late.value.error_type) == (504, "request_timeout")
    client._client.close()
    with dialects.system.client(key) as native:
        assert asked(native, 1) == 1


def asked(client: httpx.Client, least: int) -> int:
    """Count what an account has asked for, once so much is settled and nothing is open."""
    end = time.monotonic() + 60
    while (count := int(client.get("/v1/usage").json()["total"]["requests"])) < least:
        assert time.monotonic() < end
        time.sleep(0.1)
    return count


def test_a_call_above_the_most_that_its_caller_pays_is_refused(fal: Any, fal_client: ModuleType) -> None:
    assert fal.run("fal-ai/flux/dev", PROMPT | {"max_price": "0.01"})["images"]
    for price, status in (("0.009", 402), ([], 422), ("much", 422)):
        with pytest.raises(fal_client.client.FalClientHTTPError) as refused:
            fal.submit("fal-ai/flux/dev", PROMPT | {"max_price": price})
        assert refused.value.status_code == status


def test_a_low_priority_and_a_hint_are_taken(fal: Any) -> None:
    assert fal.submit("fal-ai/any-llm", {"prompt": "x"}, priority="low", hint="here").get()["output"]


async def test_the_asynchronous_client_does_the_same(fal_client: ModuleType, dialects: Secured) -> None:
    client = fal_client.AsyncClient(key=dialects.system.api_key)
    results = await asyncio.gather(*(client.subscribe("fal-ai/flux/dev", PROMPT | {"seed": at}) for at in range(4)))
    assert [result["seed"] for result in results] == [0, 1, 2, 3]
    events = [event async for event in client.stream("faregate/fake-stream", {"prompt": "Tell me."})]
    assert not events[-1]["partial"]
    url = await client.upload(b"words", "text/plain", "words.txt")
    async with httpx.AsyncClient(follow_redirects=True, timeout=60) as plain:
        assert (await plain.get(url)).content == b"words"
    with pytest.raises(fal_client.client.FalClientTimeoutError):
        await client.subscribe("fal-ai/any-llm", {"prompt": "fake:sleep=30"}, client_timeout=1.5)
    await (await client._client).aclose()


def test_polls_of_an_open_request_do_not_reach_postgres(fal: Any, dialects: Secured) -> None:
    """Where the table of open requests can be read by nobody, they go on."""
    handle = fal.submit("faregate/fake-narrow", {"prompt": "fake:sleep=50"})
    handle.status()
    with locked(dialects.system, "open_request"):
        for _ in range(200):
            handle.status()
    handle.cancel()


def test_requests_of_another_account_are_not_found(fal: Any, dialects: Secured) -> None:
    handle = fal.submit("fal-ai/flux/dev", PROMPT)
    handle.get()
    _, key = dialects.system.account(f"other-{time.time_ns()}", "1")
    with httpx.Client(headers={"authorization": f"Key {key}"}, timeout=60) as other:
        for method, url in (
            ("GET", handle.status_url),
            ("GET", handle.response_url),
            ("GET", handle.status_url + "/stream"),
            ("PUT", handle.cancel_url),
        ):
            assert other.request(method, url).status_code == 404
    slow = fal.submit("faregate/fake-image-slow", {"prompt": "fake:sleep=50"})
    slow.status()  # remembered now by the gateway that answered
    with httpx.Client(headers={"authorization": f"Key {key}"}, timeout=60) as other:
        assert other.get(slow.status_url).status_code == 404
        assert other.put(slow.cancel_url).status_code == 404
    slow.cancel()


def test_requests_of_the_native_family_are_read_here_and_the_other_way_round(fal: Any, dialects: Secured) -> None:
    with dialects.system.client() as client:
        theirs = client.post("/v1/requests", json={"model": "fake-flux", "input": PROMPT}).json()["id"]
        assert len(fal.result("fal-ai/flux/dev", theirs)["images"]) == 1
        ours = fal.submit("fal-ai/flux/dev", PROMPT)
        ours.get()
        shown = client.get(f"/v1/requests/{ours.request_id}").json()
        assert (shown["status"], shown["model"], shown["charge_nanos"]) == ("succeeded", "fake-flux", 10_000_000)


def verified(post: Post, keys: list[dict[str, str]]) -> bool:
    """Verify a webhook step by step as fal's documentation says."""
    told = [post.headers[f"x-fal-webhook-{name}"] for name in ("request-id", "user-id", "timestamp")]
    if abs(time.time() - int(told[2])) > 300:
        return False
    message = "\n".join([*told, hashlib.sha256(post.body).hexdigest()]).encode()
    signature = bytes.fromhex(post.headers["x-fal-webhook-signature"])
    for key in keys:
        public = base64.urlsafe_b64decode(key["x"] + "=" * (-len(key["x"]) % 4))
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
        except InvalidSignature:
            continue
        return True
    return False


async def test_a_webhook_is_in_fals_shape_and_verified_with_the_public_keys(
    fal_client: ModuleType, dialects: Secured
) -> None:
    client = fal_client.AsyncClient(key=dialects.system.api_key)
    async with Receiver(200) as receiver, httpx.AsyncClient(timeout=60) as plain:
        well = await client.submit("fal-ai/flux/dev", PROMPT, webhook_url=receiver.url)
        ill = await client.submit("fal-ai/any-llm", {"prompt": "fake:fail"}, webhook_url=receiver.url)
        async with asyncio.timeout(60):
            while len({post.told["request_id"] for post in receiver.posts}) < 2:
                await asyncio.sleep(0.05)
        jwks = (await plain.get(f"{dialects.url}/fal/.well-known/jwks.json")).json()
        posts = {post.told["request_id"]: post for post in receiver.posts}
        done, failed = posts[well.request_id].told, posts[ill.request_id].told
        assert (done["status"], done["error"], done["gateway_request_id"]) == ("OK", None, well.request_id)
        assert [item["content_type"] for item in done["payload"]["images"]] == ["image/png"]
        assert (failed["status"], failed["payload"]["error_type"]) == ("ERROR", "runner_server_error")
        assert failed["error"] == failed["payload"]["detail"]
        assert [(key["kty"], key["crv"]) for key in jwks["keys"]] == [("OKP", "Ed25519")]
        for post in posts.values():
            assert verified(post, jwks["keys"])
            assert not verified(msgspec.structs.replace(post, body=post.body + b" "), jwks["keys"])
    with pytest.raises(fal_client.client.FalClientHTTPError) as refused:
        await client.submit("fal-ai/flux/dev", PROMPT, webhook_url="http://169.254.169.254/")
    assert refused.value.response.json()["detail"][0]["loc"] == ["query", "fal_webhook"]
    await (await client._client).aclose()


def test_a_submit_that_is_sent_again_after_a_broken_connection_runs_once(
    fal_client: ModuleType, dialects: Secured
) -> None:
    account, key = dialects.system.account(f"again-{time.time_ns()}", "1")
    client = fal_client.SyncClient(key=key)
    client._client.get(f"{dialects.url}/v1/usage")  # its key is known from here on
    with no_admission(dialects.system.database_url, account) as barred:
        transport = Forgetful(int(httpx.URL(dialects.system.base_url).port or 0), barred)
        client._client._transport = transport
        first = client.submit("fal-ai/flux/dev", PROMPT)
    assert transport.cut == 1
    first.get()
    again = client.submit("fal-ai/flux/dev", PROMPT)  # heard to its end: another request
    assert again.request_id != first.request_id
    again.get()
    keyed = [client.submit("fal-ai/flux/dev", PROMPT, headers={"Idempotency-Key": "k"}).request_id for _ in "ab"]
    assert keyed[0] == keyed[1]
    client._client.close()
    transport.close()
    end = time.monotonic() + 60
    while dialects.system.balance(account)["held_nanos"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    with dialects.system.client(key) as native:
        assert native.get("/v1/usage").json()["total"]["requests"] == 3
