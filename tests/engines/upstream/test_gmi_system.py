"""GMI's request queue behind a running system: charges, a worker that dies while a job waits, one that never ends."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.media.samples import data_url, picture
from tests.system import System, running_system
from tests.upstreams.gmi import PATH, Gmi, Plan
from tests.upstreams.openai import until
from tests.upstreams.serving import HOST, standing

pytestmark = pytest.mark.slow

CATALOG = """
upstreams:
  gmi: {{protocol: gmi, url: "{url}", pool: away, timeout_s: 60}}
pools:
  away: {{engine: upstream, lease_ms: 1500}}
models:
  Veo3:
    tasks: [text-to-video, image-to-video]
    description: Films from elsewhere.
    price: [{{usd: 0.4, per: request}}]
    parameters: {{prompt: {{type: string}}, personGeneration: {{type: string, choices: [allow_adult, allow_all]}}}}
    routes: [{{upstream: gmi, model: Veo3, cost: [{{usd: 0.3, per: request}}]}}]
  Z-Image:
    tasks: [text-to-image]
    description: A painter who never comes.
    deadline_s: 5
    price: [{{usd: 0.01, per: request}}]
    routes: [{{upstream: gmi, model: Z-Image}}]
"""


class Away:
    """A system, and the queue behind it."""

    def __init__(self, system: System, gmi: Gmi) -> None:
        self.system, self.gmi = system, gmi


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Away]:
    folder = tmp_path_factory.mktemp("gmi")
    folder.chmod(0o711)
    gmi = Gmi()
    with standing(gmi):
        catalog = folder / "catalog.yaml"
        catalog.write_text(CATALOG.format(url=gmi.url + PATH))
        environ = {"FAREGATE_UPSTREAM_GMI_KEY": gmi.key, "FAREGATE_WORKER_FETCH_ALLOW": HOST}
        with running_system(folder / "data", "--catalog", str(catalog), engines="upstream", environ=environ) as system:
            system.wait_ready("Veo3", "Z-Image")
            yield Away(system, gmi)


@pytest.fixture
def away(running: Away) -> Away:
    running.gmi.plans.clear()
    running.gmi.seen.clear()
    running.gmi.records.clear()
    return running


def start(away: Away, key: str, model: str, **given: Any) -> str:
    """Submit a request, and answer its id."""
    with away.system.client(key) as client:
        made = client.post("/v1/requests", json={"model": model, "input": {"prompt": "a hill", **given}})
    assert made.status_code == 202, made.text
    request_id: str = made.json()["id"]
    return request_id


def end_of(away: Away, key: str, request_id: str) -> dict[str, Any]:
    """Wait for the end of a request."""
    found: dict[str, Any] = {}

    def over() -> bool:
        with away.system.client(key) as client:
            found.update(client.get(f"/v1/requests/{request_id}").json())
        return found["status"] not in ("queued", "running")

    until(over, 120.0)
    return found


def test_a_video_of_an_image_is_bought_copied_and_charged(away: Away) -> None:
    account, key = away.system.account(f"video-{time.time_ns()}", "10")
    image = data_url(picture(64, 48), "image/png")
    told = end_of(away, key, start(away, key, "Veo3", image=image, personGeneration="allow_adult"))
    assert told["status"] == "succeeded", told
    [asked] = away.gmi.asked("POST", f"{PATH}/requests")
    payload = asked.json()["payload"]
    assert payload == {"prompt": "a hill", "image": payload["image"], "personGeneration": "allow_adult"}
    assert payload["image"].startswith(f"{away.gmi.url}/public/bucket/")
    assert (picture(64, 48), "image/png") in away.gmi.uploaded.values()
    balance = away.system.balance(account)
    assert (balance["held_nanos"], balance["spent_nanos"]) == (0, 400_000_000)
    assert away.gmi.url not in str(told["output"]), "the caller is given our copy, and no address of the upstream"


def test_a_worker_killed_while_a_job_waits_costs_nothing_and_its_successor_goes_on(away: Away) -> None:
    away.gmi.plans["Veo3"] = Plan(looks=10_000)
    account, key = away.system.account(f"killed-{time.time_ns()}", "10")
    request_id = start(away, key, "Veo3")
    until(lambda: away.gmi.asked("GET", f"{PATH}/requests/"))
    for pid in away.system.pids("worker"):
        os.kill(pid, signal.SIGKILL)
    looked = len(away.gmi.asked("GET", f"{PATH}/requests/"))
    until(lambda: len(away.gmi.asked("GET", f"{PATH}/requests/")) > looked, 120.0)
    for job in away.gmi.left:
        away.gmi.left[job] = 0
    told = end_of(away, key, request_id)
    assert told["status"] == "succeeded", told
    assert len(away.gmi.asked("POST", f"{PATH}/requests")) == 1
    assert away.gmi.asked("DELETE", PATH) == []
    assert away.system.balance(account)["spent_nanos"] == 400_000_000


def test_a_job_that_stays_queued_for_ever_ends_by_our_own_deadline_and_frees_the_hold(away: Away) -> None:
    account, key = away.system.account(f"stuck-{time.time_ns()}", "10")
    for _ in range(3):
        told = end_of(away, key, start(away, key, "Z-Image"))
        assert told["status"] == "expired", told
        if away.gmi.asked("POST", f"{PATH}/requests"):  # else the deadline passed before the job was bought
            break
    until(lambda: away.gmi.asked("DELETE", f"{PATH}/requests/"))
    until(lambda: away.system.balance(account)["held_nanos"] == 0)
