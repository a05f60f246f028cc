"""replicate-python, unmodified, with another base URL."""

import asyncio
import io
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import pytest
import replicate
from PIL import Image
from replicate.client import Client
from replicate.exceptions import ModelError, ReplicateError
from replicate.helpers import FileOutput
from replicate.webhook import InvalidSignatureError, Webhooks, WebhookSigningSecret

from tests.sdk.secured import Secured
from tests.webhooks.receiver import Receiver

WITHIN_S = 60.0


@pytest.fixture
def client(dialects: Secured) -> Iterator[Client]:
    with client_of(dialects) as made:
        yield made


@contextmanager
def client_of(dialects: Secured, key: str | None = None) -> Iterator[Client]:
    """Make a client, and close its connections in the end: it has no way of its own to."""
    made = Client(api_token=key or dialects.system.api_key, base_url=f"{dialects.url}/replicate")
    made.poll_interval = 0.05
    yield made
    made._client.close()
    asyncio.run(made._async_client.aclose())


@asynccontextmanager
async def async_client_of(dialects: Secured) -> AsyncIterator[Client]:
    """Make a client for an event loop, and close its connections in the end."""
    made = Client(api_token=dialects.system.api_key, base_url=f"{dialects.url}/replicate")
    made.poll_interval = 0.05
    yield made
    await made._async_client.aclose()
    made._client.close()


@pytest.fixture
def picture() -> io.BytesIO:
    file = io.BytesIO()
    Image.new("RGB", (48, 32), "red").save(file, "png")
    file.seek(0)
    file.name = "gate.png"
    return file


def drawn(output: Any) -> Image.Image:
    assert isinstance(output, FileOutput)
    return Image.open(io.BytesIO(output.read()))


def test_a_run_gives_images_as_files(client: Client) -> None:
    output = client.run("black-forest-labs/flux-dev", input={"prompt": "a gate", "num_outputs": 2, "size": "96x64"})
    assert [drawn(item).size for item in output] == [(96, 64)] * 2


def test_a_model_without_an_owner_is_faregates(client: Client) -> None:
    output: Any = client.run("faregate/fake-image", input={"prompt": "a gate"})
    assert len(output) == 1


def test_a_version_is_found_by_its_id(client: Client) -> None:
    model = client.models.get("google/veo-3")
    assert (model.owner, model.name) == ("faregate", "fake-veo")
    assert model.latest_version is not None
    ref = f"google/veo-3:{model.latest_version.id}"
    assert isinstance(client.run(ref, input={"prompt": "a gate", "duration": 1}), FileOutput)
    assert [version.id for version in model.versions.list()] == [model.latest_version.id]
    schemas = model.latest_version.openapi_schema["components"]["schemas"]
    assert schemas["Input"]["properties"]["fps"]["default"] == 8
    assert schemas["Output"]["format"] == "uri"
    with pytest.raises(ReplicateError) as unknown:
        client.run(f"google/veo-3:{'0' * 64}", input={"prompt": "a gate"})
    assert unknown.value.status == 404


def test_text_is_run_as_a_list_and_streamed_as_it_comes(client: Client) -> None:
    given = {"prompt": "Say something.", "max_new_tokens": 50}
    events = list(client.stream("faregate/fake-stream", input=given))
    texts = [str(event) for event in events if event.event.value == "output"]
    assert events[-1].event.value == "done"
    assert len(texts) > 30
    assert "".join(client.run("faregate/fake-stream", input=given)) == "".join(texts)


def test_a_run_of_a_text_models_version_is_an_iterator(client: Client) -> None:
    version = client.models.get("meta/fake-chat").latest_version
    assert version is not None
    output = client.run(version, input={"prompt": "Hi"})  # type: ignore[arg-type]
    assert not isinstance(output, list)
    assert "".join(output)


def test_a_prediction_is_made_waited_for_and_reloaded(client: Client) -> None:
    prediction: Any = client.predictions.create(model="google/veo-3", input={"prompt": "a gate", "duration": "2"})
    assert prediction.status == "starting"
    assert prediction.id.startswith("req_")
    prediction.wait()
    assert prediction.status == "succeeded"
    assert prediction.input == {"prompt": "a gate", "duration": "2"}
    assert prediction.model == "faregate/fake-veo"
    assert prediction.metrics is not None
    assert 0 < prediction.metrics["predict_time"] <= prediction.metrics["total_time"]
    assert prediction.metrics["video_ms"] == 2000
    assert prediction.progress is not None
    assert (prediction.progress.percentage, prediction.progress.total) == (1.0, 100)
    assert prediction.created_at is not None
    assert prediction.started_at is not None
    assert prediction.completed_at is not None
    assert prediction.created_at <= prediction.started_at <= prediction.completed_at
    assert prediction.output.startswith("https://")
    film = httpx.get(prediction.output, verify=ssl.create_default_context(), timeout=60)
    assert film.headers["content-type"] == "video/mp4"


def test_a_prediction_that_runs_tells_how_far_it_is_and_is_cancelled(client: Client) -> None:
    given = {"prompt": "a gate", "steps": 400}
    prediction = client.predictions.create(model="faregate/fake-video-slow", input=given)
    end = time.monotonic() + WITHIN_S
    while prediction.status != "processing" or prediction.progress is None:
        assert time.monotonic() < end
        time.sleep(0.05)
        prediction.reload()
    assert 0 <= prediction.progress.percentage < 1  # type: ignore[union-attr]
    prediction.cancel()
    prediction.wait()
    assert prediction.status == "canceled"
    assert prediction.output is None


def test_waiting_is_over_when_it_was_said_to_be(client: Client) -> None:
    """In one try of four, on a machine that stands still now and then; what is waited for takes three seconds."""
    version = client.models.get("faregate/fake-image-slow").latest_version
    assert version is not None
    for _ in range(4):
        began = time.monotonic()
        prediction: Any = client.predictions.create(version=version.id, input={"prompt": "a gate"}, wait=1)
        took_s, status = time.monotonic() - began, prediction.status
        prediction.wait()
        assert prediction.status == "succeeded"
        if took_s < 3 and status == "starting":
            break
    assert (took_s < 3, status) == (True, "starting")


def test_cancel_after_ends_a_prediction_that_is_late(dialects: Secured) -> None:
    headers = {"cancel-after": "5s", "authorization": f"Token {dialects.system.api_key}"}
    body = {"model": "faregate/fake-image-slow", "input": {"prompt": "fake:sleep=50"}}
    with httpx.Client(base_url=dialects.system.base_url, headers=headers, timeout=60) as raw:
        made = raw.post("/replicate/v1/predictions", json=body)
        assert made.status_code == 201, made.text
        shown = raw.get(made.json()["urls"]["get"].replace(dialects.url, "")).json()
        assert shown["deadline"] is not None
        refused = raw.post("/replicate/v1/predictions", json=body, headers={"cancel-after": "1s"})
        assert refused.status_code == 400
        end = time.monotonic() + WITHIN_S
        while not shown["completed_at"]:
            assert time.monotonic() < end
            time.sleep(0.1)
            shown = raw.get(f"/replicate/v1/predictions/{shown['id']}").json()
        assert (shown["status"], shown["charge_nanos"]) == ("canceled", 0)


def test_a_model_that_fails_raises(client: Client) -> None:
    with pytest.raises(ModelError) as failed:
        client.run("faregate/fake-video", input={"prompt": "fake:fail"})
    assert failed.value.prediction.status == "failed"
    assert failed.value.prediction.error
    events = failed.value.prediction.stream()
    with pytest.raises(RuntimeError, match="engine"):
        list(events)


def test_errors_are_problem_details(client: Client, dialects: Secured) -> None:
    with pytest.raises(ReplicateError) as unknown:
        client.run("nobody/nothing", input={"prompt": "a"})
    assert (unknown.value.status, unknown.value.title) == (404, "Not Found")
    with pytest.raises(ReplicateError) as odd:
        client.predictions.create(model="faregate/fake-image", input={"prompt": "a", "api_base": "http://x"})
    assert odd.value.status == 400
    assert "api_base" in (odd.value.detail or "")
    with client_of(dialects, "wrong") as other, pytest.raises(ReplicateError) as stranger:
        other.predictions.list()
    assert stranger.value.status == 401
    with pytest.raises(ReplicateError) as gone:
        client.predictions.get("req_" + "0" * 32)
    assert gone.value.status == 404


def test_files_are_uploaded_used_listed_and_deleted(client: Client, picture: io.BytesIO) -> None:
    kept = client.files.create(picture, filename="gate.png")
    assert (kept.name, kept.content_type) == ("gate.png", "image/png")
    assert client.files.get(kept.id).size == kept.size
    assert kept.id in [file.id for file in client.files.list()]
    output: Any = client.run("faregate/fake-image", input={"prompt": "blue", "image": kept.urls["get"]})
    assert drawn(output[0]).size == (64, 64)
    assert client.files.delete(kept.id)
    with pytest.raises(ReplicateError):
        client.files.get(kept.id)


@pytest.mark.parametrize("strategy", [None, "base64"])
def test_a_file_goes_with_an_input(client: Client, picture: io.BytesIO, strategy: Any) -> None:
    version = client.models.get("faregate/fake-upscale").latest_version
    assert version is not None
    prediction: Any = client.predictions.create(
        version, {"image": picture, "scale": 2}, file_encoding_strategy=strategy
    )
    prediction.wait()
    assert prediction.status == "succeeded", prediction.error
    assert drawn(FileOutput(prediction.output[0], client)).size == (96, 64)


def test_predictions_are_listed_a_page_at_a_time(dialects: Secured) -> None:
    _, key = dialects.system.account(f"predictor-{time.time_ns()}", "10")
    with client_of(dialects, key) as client:
        ids = [client.predictions.create(model="faregate/fake-image", input={"prompt": "a"}).id for _ in range(102)]
        pages = list(replicate.paginate(client.predictions.list))
    assert [len(page) for page in pages] == [100, 2]
    assert [prediction.id for page in pages for prediction in page] == ids[::-1]


def test_models_are_listed_a_page_at_a_time_with_how_often_they_ran(client: Client) -> None:
    client.run("faregate/fake-image", input={"prompt": "a"})
    models = {model.id: model for page in replicate.paginate(client.models.list) for model in page}
    assert models["faregate/fake-image"].run_count >= 1
    assert models["faregate/fake-rerank"].run_count == 0


def test_a_deployment_is_the_model_of_its_name(client: Client) -> None:
    deployment = client.deployments.get("google/veo-3")
    prediction = deployment.predictions.create(input={"prompt": "a gate"})
    prediction.wait()
    assert prediction.status == "succeeded"
    assert deployment.id in [each.id for each in client.deployments.list()]


def test_the_account_is_that_of_the_key(client: Client) -> None:
    assert client.accounts.current().name == "demo"


async def test_the_asynchronous_client_does_the_same(dialects: Secured) -> None:
    async with async_client_of(dialects) as client:
        output: Any = await client.async_run("faregate/fake-image", input={"prompt": "a gate"})
        assert Image.open(io.BytesIO(await output[0].aread())).size == (64, 64)
        prediction = await client.predictions.async_create(model="google/veo-3", input={"prompt": "a gate"})
        await prediction.async_wait()
        assert prediction.status == "succeeded"
        events = [event async for event in await client.async_stream("meta/fake-chat", input={"prompt": "Hi"})]
        assert [event.event.value for event in events][-2:] == ["output", "done"]
        asked = {"prompt": "fake:sleep=50"}
        slow = await client.predictions.async_create(model="faregate/fake-video-slow", input=asked)
        await slow.async_cancel()
        await slow.async_wait()
        assert slow.status == "canceled"


async def test_a_webhook_tells_the_prediction_and_is_verified_by_the_clients_own_code(dialects: Secured) -> None:
    async with Receiver() as receiver, async_client_of(dialects) as client:
        prediction = await client.predictions.async_create(
            model="google/veo-3",
            input={"prompt": "a gate"},
            webhook=receiver.url,
            webhook_events_filter=["completed"],
        )
        await prediction.async_wait()
        post = (await receiver.until(1, 60))[0]
        secret = await client.webhooks.default.async_secret()
    told = post.told
    assert (told["id"], told["status"], told["model"]) == (prediction.id, "succeeded", "faregate/fake-veo")
    assert told["output"].startswith(dialects.url)
    assert told["charge_nanos"] == 100_000_000
    body, other = post.body.decode(), WebhookSigningSecret(key="whsec_" + "A" * 44)
    Webhooks.validate(headers=post.headers, body=body, secret=secret, tolerance=300)
    for said, signed in ((body + " ", secret), (body, other)):
        with pytest.raises(InvalidSignatureError):
            Webhooks.validate(headers=post.headers, body=said, secret=signed)
