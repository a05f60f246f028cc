"""A whole system whose pictures and videos are made by the real diffusers: called, charged, cancelled, killed."""

import base64
import io
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import httpx
import openai
import pytest
from PIL import Image

from tests.engines.diffusers_driver import encoded, film_file, gradient
from tests.system import System, running_system

pytestmark = pytest.mark.slow

CATALOG = Path(__file__).parent / "diffusers_catalog.yaml"
WITHIN_S = 240.0
BUDGET_MB = "12"
"""All models together take more."""


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


PICTURE = data_url(encoded(gradient(64, 64)))
OTHER = data_url(encoded(gradient(64, 64, 200)))
FILM = data_url(film_file(3, (16, 16), fps=4), "video/mp4")


@pytest.fixture(scope="module")
def drawing_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("diffusers")
    folder.chmod(0o711)
    environ = {"FAREGATE_WORKER_MEMORY_MB": BUDGET_MB}
    with running_system(
        folder / "data", "--catalog", str(CATALOG), engines="diffusers", environ=environ
    ) as running_now:
        running_now.wait_ready("sd", "sd-edit", "pix2pix", "upscale", "wan", "ltx", within_s=WITHIN_S)
        yield running_now


@pytest.fixture
def client(drawing_system: System) -> Iterator[httpx.Client]:
    with drawing_system.client() as made:
        made.timeout = httpx.Timeout(WITHIN_S)
        yield made


def until(what: str, true: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_models_that_are_not_in_memory_are_available_and_say_so(client: httpx.Client) -> None:
    rows = client.get("/v1/models").json()["data"]
    assert all(row["available"] for row in rows)
    assert "on_demand" in {row["state"] for row in rows}
    assert all("loaded when a request comes" in row["reason"] for row in rows if row["state"] == "on_demand")


@pytest.mark.parametrize(
    ("model", "given", "size", "charge_nanos"),
    [
        ("sd", {"prompt": "a gate", "size": "96x64"}, (96, 64), 14_000_000),
        ("sd-edit", {"prompt": "a river", "image": PICTURE, "strength": 0.5}, (64, 64), 12_000_000),
        ("sd-blend", {"images": [PICTURE, OTHER], "strength": 0.5}, (64, 64), 12_000_000),
        ("sd-relight", {"image": PICTURE, "direction": "left", "strength": 1.0}, (64, 64), 14_000_000),
        ("sd-restyle", {"image": PICTURE, "prompt": "x", "strength": 1.0}, (64, 64), 14_000_000),
        ("pix2pix", {"prompt": "make it blue", "image": PICTURE}, (64, 64), 20_000_000),
        ("upscale", {"image": PICTURE, "scale": 2}, (128, 128), 8_192_000),
    ],
)
def test_every_task_of_images_is_drawn_measured_and_charged(
    client: httpx.Client, model: str, given: dict[str, Any], size: tuple[int, int], charge_nanos: int
) -> None:
    answer = client.post("/v1/requests", json={"model": model, "input": given}, headers={"prefer": "wait=200"})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    (media,) = told["output"]["media"]
    picture = Image.open(io.BytesIO(client.get(media["url"]).content))
    assert picture.size == size == (media["width"], media["height"])
    assert told["charge_nanos"] == charge_nanos
    assert told["phases_ms"]["forward"] > 0


@pytest.mark.parametrize(
    ("model", "given", "size", "frames"),
    [
        ("wan", {"prompt": "a gate", "frames": 8}, (64, 64), 8),
        ("ltx", {"image": PICTURE}, (64, 64), 9),
        ("upscale", {"video": FILM}, (64, 64), 3),
    ],
)
def test_every_task_of_video_makes_one_that_plays(
    client: httpx.Client, model: str, given: dict[str, Any], size: tuple[int, int], frames: int
) -> None:
    answer = client.post("/v1/requests", json={"model": model, "input": given}, headers={"prefer": "wait=200"})
    assert answer.status_code == 200, answer.text
    media, still = answer.json()["output"]["media"]
    with av.open(io.BytesIO(client.get(media["url"]).content)) as file:
        decoded = list(file.decode(video=0))
    assert (len(decoded), (decoded[0].width, decoded[0].height)) == (frames, size)
    assert Image.open(io.BytesIO(client.get(still["url"]).content)).size == size
    assert answer.json()["charge_nanos"] > 0


def test_the_sdk_generates_and_edits(drawing_system: System) -> None:
    base_url = f"{drawing_system.base_url}/v1"
    with openai.OpenAI(base_url=base_url, api_key=drawing_system.api_key, max_retries=0) as sdk:
        made = sdk.images.generate(model="sd", prompt="a gate", n=2, size="96x64")  # type: ignore[call-overload]
        sizes = [Image.open(io.BytesIO(base64.b64decode(item.b64_json))).size for item in made.data]
        assert sizes == [(96, 64)] * 2
        edited = sdk.images.edit(model="pix2pix", prompt="blue", image=("a.png", encoded(gradient(64, 64))))
        assert edited.data is not None
        assert edited.data[0].b64_json is not None
        assert Image.open(io.BytesIO(base64.b64decode(edited.data[0].b64_json))).size == (64, 64)


def test_what_the_model_cannot_draw_is_a_400_that_names_the_field(drawing_system: System, client: httpx.Client) -> None:
    answer = client.post("/v1/images/generations", json={"model": "sd", "prompt": "a", "size": "100x64"})
    assert answer.status_code == 400, answer.text
    assert "multiples of 8" in answer.json()["error"]["message"]


def test_a_cancelled_request_stops_and_pays_for_its_steps(client: httpx.Client) -> None:
    body = {"model": "sd", "input": {"prompt": "a", "steps": 500, "size": "128x128"}}
    request_id = client.post("/v1/requests", json=body).json()["id"]
    until("progress", lambda: bool(client.get(f"/v1/requests/{request_id}").json().get("progress")))
    client.post(f"/v1/requests/{request_id}/cancel")
    until("the end", lambda: client.get(f"/v1/requests/{request_id}").json()["status"] == "cancelled")
    told = client.get(f"/v1/requests/{request_id}").json()
    assert 0 < told["usage"]["steps"] < 500
    assert told["charge_nanos"] == told["usage"]["steps"] * 1_000_000


def test_a_worker_killed_in_the_middle_of_an_image_costs_nobody_twice(drawing_system: System) -> None:
    account, key = drawing_system.account("killer", "5")
    with drawing_system.client(key) as client:
        body = {"model": "sd", "input": {"prompt": "a", "steps": 300, "seed": 1}}
        request_id = client.post("/v1/requests", json=body).json()["id"]
        told: dict[str, Any] = {}

        def half_way() -> bool:
            told.update(client.get(f"/v1/requests/{request_id}").json())
            return (told.get("progress") or 0) > 0.1

        until("progress", half_way)
        with client.stream("GET", f"/v1/requests/{request_id}/events") as events:
            started = next(line for line in events.iter_lines() if '"worker"' in line)
        (pid,) = re.findall(r'-(\d+)"', started)
        os.kill(int(pid), signal.SIGKILL)
        until("the end", lambda: client.get(f"/v1/requests/{request_id}").json()["status"] == "succeeded")
        shown = client.get(f"/v1/requests/{request_id}").json()
    assert (shown["attempt"], shown["charge_nanos"]) == (2, 310_000_000)
    files = [path.name for path in (drawing_system.data / "blobs").rglob(f"{request_id}-*")]
    assert len(files) == 1
    balance = drawing_system.balance(account)
    assert (balance["spent_nanos"], balance["held_nanos"]) == (310_000_000, 0)


def test_the_books_hold(drawing_system: System) -> None:
    verified = drawing_system.run("books", "verify")
    assert verified.returncode == 0, verified.stdout
