"""Fields of one model alone, which its catalog entry declares, are taken in every family beside those of its task."""

import ssl
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import httpx
import openai
import pytest
from replicate.client import Client as Replicate
from replicate.exceptions import ReplicateError

from tests.sdk.secured import Secured

pytestmark = pytest.mark.filterwarnings("ignore:.*(Sora|deprecated).*:DeprecationWarning")

FAMILIES = ("native", "openai", "replicate", "gmi", "fal")
FIELDS = {"cfg_scale": 0.5, "watermark": False, "aspect_ratio": "1:1"}


class Callers:
    """Asks for a video in each family; answers its id, or the words of the refusal."""

    def __init__(self, dialects: Secured, fal_client: ModuleType, http: httpx.Client) -> None:
        self._url, self._key = dialects.url, dialects.system.api_key
        self._fal_client = fal_client
        self.http = http

    def native(self, given: dict[str, Any]) -> str:
        answer = self.http.post("/v1/requests", json={"model": "fake-kling", "input": given})
        return str(answer.json()["id"]) if answer.status_code == 202 else answer.text

    def gmi(self, given: dict[str, Any]) -> str:
        path = "/api/v1/ie/requestqueue/apikey/requests"
        answer = self.http.post(path, json={"model": "fake-kling", "payload": given})
        return str(answer.json()["request_id"]) if answer.status_code == 200 else answer.text

    def openai(self, given: dict[str, Any]) -> str:
        more = {name: value for name, value in given.items() if name != "prompt"}
        with openai.OpenAI(base_url=f"{self._url}/v1", api_key=self._key, max_retries=0) as client:
            try:
                return client.videos.create(model="fake-kling", prompt="a gate", extra_body=more).id
            except openai.BadRequestError as error:
                return f"{error.param}: {error}"

    def replicate(self, given: dict[str, Any]) -> str:
        client = Replicate(api_token=self._key, base_url=f"{self._url}/replicate")
        try:
            return client.predictions.create(model="kwaivgi/kling", input=given).id
        except ReplicateError as error:
            return str(error)
        finally:
            client._client.close()

    def fal(self, given: dict[str, Any]) -> str:
        client = self._fal_client.SyncClient(key=self._key)
        try:
            return str(client.submit("fal-ai/kling", given).request_id)
        except self._fal_client.FalClientHTTPError as error:
            return str(error.response.text)
        finally:
            client._client.close()


@pytest.fixture(scope="module")
def callers(dialects: Secured, fal_client: ModuleType) -> Iterator[Callers]:
    headers = {"authorization": f"Bearer {dialects.system.api_key}"}
    trusted = ssl.create_default_context()
    with httpx.Client(base_url=dialects.url, headers=headers, verify=trusted, timeout=60) as http:
        yield Callers(dialects, fal_client, http)


@pytest.mark.parametrize("family", FAMILIES)
def test_declared_fields_are_taken(callers: Callers, family: str) -> None:
    said = getattr(callers, family)({"prompt": "a gate"} | FIELDS)
    assert said.startswith("req_"), said


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("name", "value"),
    [("cfg_scale", 2), ("cfg_scale", "high"), ("watermark", "no"), ("aspect_ratio", "2:1"), ("api_base", "http://x")],
)
def test_what_is_outside_their_limits_or_declared_by_nobody_is_refused_by_name(
    callers: Callers, family: str, name: str, value: Any
) -> None:
    said = getattr(callers, family)({"prompt": "a gate"} | {name: value})
    assert name in said


@pytest.mark.parametrize("family", FAMILIES)
def test_nobody_reaches_round_the_check_of_them(callers: Callers, family: str) -> None:
    said = getattr(callers, family)({"prompt": "a gate", "extra": {"cfg_scale": 2}})
    assert not said.startswith("req_")
    assert "cfg_scale" in said


def test_a_curl_of_gmis_works_with_only_the_host_changed(callers: Callers) -> None:
    """The model and its fields stand there as GMI's own page prints them."""
    path = "/api/v1/ie/requestqueue/apikey"
    payload = {"prompt": "a gate", "negativePrompt": "fog", "duration": "2", "cfg_scale": 0.5, "aspect_ratio": "16:9"}
    answer = callers.http.post(f"{path}/requests", json={"model": "Kling-Text2Video-V0", "payload": payload})
    assert answer.status_code == 200, answer.text
    assert answer.json()["hold_nanos"] == 200_000_000
    assert "Kling-Text2Video-V0" in callers.http.get(f"{path}/models").json()["model_ids"]
    assert callers.http.get(f"{path}/models/Kling-Text2Video-V0").json()["model"] == "fake-kling"
