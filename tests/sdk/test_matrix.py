"""One request, every dialect: a video asked for in one family is read, billed and stopped in every other.

Each family is spoken by its vendor's own client where there is one.
"""

import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from types import ModuleType
from typing import Any, Protocol

import httpx
import msgspec
import openai
import pytest
from replicate.client import Client as Replicate

from gateway.contract.states import Status
from tests.sdk.secured import Secured

pytestmark = pytest.mark.filterwarnings("ignore:.*(Sora|deprecated).*:DeprecationWarning")

FAMILIES = ("native", "openai", "replicate", "gmi", "fal")
CHARGE_NANOS = 200_000_000
WITHIN_S = 60.0
QUICK, SLOW = "fake-veo", "fake-video-slow"
PROMPTS = {QUICK: "a gate", SLOW: "fake:sleep=50"}
"""What is to be stopped does not end before."""


class Read(msgspec.Struct, frozen=True):
    """A request as a family shows it, in our words for how it stands."""

    status: Status
    charge_nanos: int | None = None
    video: str = ""


class Family(Protocol):
    """A client of one family."""

    def submit(self, model: str) -> str: ...

    def read(self, request_id: str) -> Read: ...

    def cancel(self, request_id: str) -> None: ...


class Native:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def submit(self, model: str) -> str:
        given = {"prompt": PROMPTS[model]} | ({"seconds": 2} if model == QUICK else {})
        request_id: str = self._http.post("/v1/requests", json={"model": model, "input": given}).json()["id"]
        return request_id

    def read(self, request_id: str) -> Read:
        shown = self._http.get(f"/v1/requests/{request_id}").json()
        media = (shown.get("output") or {}).get("media")
        return Read(shown["status"], shown.get("charge_nanos"), media[0]["url"] if media else "")

    def cancel(self, request_id: str) -> None:
        assert self._http.post(f"/v1/requests/{request_id}/cancel").status_code == 200


class OpenAI:
    STATUSES: dict[str, Status] = {
        "queued": "queued",
        "in_progress": "running",
        "completed": "succeeded",
        "failed": "failed",
    }

    def __init__(self, client: openai.OpenAI) -> None:
        self._client = client

    def submit(self, model: str) -> str:
        length: Any = "2" if model == QUICK else openai.omit
        return self._client.videos.create(model=model, prompt=PROMPTS[model], seconds=length).id

    def read(self, request_id: str) -> Read:
        video: Any = self._client.videos.retrieve(request_id)
        status = self.STATUSES[video.status]
        if status == "failed" and video.error.code == "cancelled":
            status = "cancelled"
        charge = getattr(video, "charge_nanos", None)
        found = status == "succeeded" and self._client.videos.download_content(request_id).content[4:8] == b"ftyp"
        return Read(status, charge, "downloaded" if found else "")

    def cancel(self, request_id: str) -> None:
        assert self._client.videos.delete(request_id).deleted


class OfReplicate:
    STATUSES: dict[str, Status] = {
        "starting": "queued",
        "processing": "running",
        "succeeded": "succeeded",
        "failed": "failed",
        "canceled": "cancelled",
    }
    NAMES = {QUICK: "google/veo-3", SLOW: f"faregate/{SLOW}"}

    def __init__(self, client: Replicate) -> None:
        self._client = client

    def submit(self, model: str) -> str:
        given = {"prompt": PROMPTS[model]} | ({"duration": 2} if model == QUICK else {})
        return self._client.predictions.create(model=self.NAMES[model], input=given).id

    def read(self, request_id: str) -> Read:
        prediction = self._client.predictions.get(request_id)
        raw = self._client._request("GET", f"/v1/predictions/{request_id}").json()  # its objects drop what they miss
        return Read(self.STATUSES[prediction.status], raw.get("charge_nanos"), prediction.output or "")

    def cancel(self, request_id: str) -> None:
        self._client.predictions.cancel(request_id)


class Gmi:
    PATH = "/api/v1/ie/requestqueue/apikey/requests"
    STATUSES: dict[str, Status] = {
        "queued": "queued",
        "processing": "running",
        "success": "succeeded",
        "failed": "failed",
        "cancelled": "cancelled",
    }

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def submit(self, model: str) -> str:
        payload = {"prompt": PROMPTS[model]} | ({"durationSeconds": "2"} if model == QUICK else {})
        request_id: str = self._http.post(self.PATH, json={"model": model, "payload": payload}).json()["request_id"]
        return request_id

    def read(self, request_id: str) -> Read:
        record = self._http.get(f"{self.PATH}/{request_id}").json()
        video = (record["outcome"] or {}).get("video_url", "")
        return Read(self.STATUSES[record["status"]], record.get("charge_nanos"), video)

    def cancel(self, request_id: str) -> None:
        assert self._http.delete(f"{self.PATH}/{request_id}").status_code == 200


class Fal:
    APP = "fal-ai/veo3"

    def __init__(self, module: ModuleType, client: Any) -> None:
        self._module = module
        self._client = client

    def submit(self, model: str) -> str:
        given = {"prompt": PROMPTS[model]} | ({"duration": "2s"} if model == QUICK else {})
        request_id: str = self._client.submit(self.APP if model == QUICK else model, given).request_id
        return request_id

    def read(self, request_id: str) -> Read:
        status = self._client.status(self.APP, request_id)
        if isinstance(status, self._module.Queued):
            return Read("queued")
        if isinstance(status, self._module.InProgress):
            return Read("running")
        handle = self._client.get_handle(self.APP, request_id)
        answer = self._client._client.get(handle.response_url)
        if status.error is None:
            charge = int(answer.headers["x-faregate-charge-nanos"])
            return Read("succeeded", charge, answer.json()["video"]["url"])
        return Read("cancelled" if "cancelled" in status.error else "failed")

    def cancel(self, request_id: str) -> None:
        self._client.cancel(self.APP, request_id)


@pytest.fixture(scope="module")
def families(dialects: Secured, fal_client: ModuleType) -> Iterator[dict[str, Family]]:
    """Answer a client of each family, all with one key."""
    key, trusted = dialects.system.api_key, ssl.create_default_context()
    with ExitStack() as stack:
        headers = {"authorization": f"Bearer {key}"}
        http = stack.enter_context(httpx.Client(base_url=dialects.url, headers=headers, verify=trusted, timeout=60))
        sdk = stack.enter_context(openai.OpenAI(base_url=f"{dialects.url}/v1", api_key=key, max_retries=0))
        replicate = Replicate(api_token=key, base_url=f"{dialects.url}/replicate")
        stack.callback(lambda: replicate._client.close())
        fal = fal_client.SyncClient(key=key)
        stack.callback(lambda: fal._client.close())
        yield {
            "native": Native(http),
            "openai": OpenAI(sdk),
            "replicate": OfReplicate(replicate),
            "gmi": Gmi(http),
            "fal": Fal(fal_client, fal),
        }


def ended(family: Family, request_id: str) -> Read:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        read = family.read(request_id)
        if read.status not in ("queued", "running"):
            return read
        time.sleep(0.05)
    raise AssertionError(f"{request_id} did not end")


@pytest.mark.parametrize("reads", FAMILIES)
@pytest.mark.parametrize("submits", FAMILIES)
def test_a_video_of_one_family_is_read_and_billed_in_another(
    families: dict[str, Family], submits: str, reads: str
) -> None:
    request_id = families[submits].submit(QUICK)
    assert request_id.startswith("req_")
    read = ended(families[reads], request_id)
    assert (read.status, read.charge_nanos) == ("succeeded", CHARGE_NANOS)
    assert read.video
    assert {family.read(request_id).charge_nanos for family in families.values()} == {CHARGE_NANOS}


@pytest.mark.parametrize("cancels", FAMILIES)
@pytest.mark.parametrize("submits", FAMILIES)
def test_a_video_of_one_family_is_stopped_in_another(families: dict[str, Family], submits: str, cancels: str) -> None:
    request_id = families[submits].submit(SLOW)
    families[cancels].cancel(request_id)
    for name, family in families.items():
        if cancels == name == "openai":
            continue  # to delete a video is to forget it there, and to stop it everywhere
        read = ended(family, request_id)
        assert (name, read.status, read.video) == (name, "cancelled", "")


def test_the_money_of_all_that_was_asked_for_in_any_family_adds_up(dialects: Secured) -> None:
    answer = dialects.system.run("books", "verify")
    assert answer.returncode == 0, answer.stdout
