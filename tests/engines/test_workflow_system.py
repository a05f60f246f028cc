"""A head that talks, through HTTP and by real engines: what comes back is opened, measured and paid for once."""

import io
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import absent
from tests.system import System, running_system

CATALOG = Path(__file__).with_name("talking_head.yaml")
LOAD_S = 300.0
WORK_S = 240.0
TEXT = "Mind the gap between the platform and the train."


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    for package in ("torch", "diffusers", "transformers", "av"):
        if find_spec(package) is None:
            absent(package)
    folder = tmp_path_factory.mktemp("heads")
    folder.chmod(0o711)
    with running_system(folder / "data", "--catalog", str(CATALOG), engines="speech,diffusers,workflow") as system:
        system.wait_ready("espeak-ng", "tiny-vits", "tiny-ltx", "head", "hissing-head", within_s=LOAD_S)
        yield system


def face() -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (96, 96), (230, 200, 170))
    ImageDraw.Draw(image).ellipse((30, 30, 66, 80), fill=(180, 90, 70))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def call(system: System, model: str, **given: Any) -> dict[str, Any]:
    """Upload the face, ask for a video of it, and wait for its end."""
    account, key = system.account(f"{model}-{time.time_ns()}", "10")
    with system.client(key) as client:
        uploaded = client.post("/v1/files", files={"file": ("face.png", face())}, data={"purpose": "vision"})
        assert uploaded.status_code in (200, 201), uploaded.text
        body = {"model": model, "input": {"image": uploaded.json()["id"], **given}}
        told = client.post("/v1/requests", json=body)
        assert told.status_code == 202, told.text
        shown: dict[str, Any] = told.json()
        end = time.monotonic() + WORK_S
        while shown["status"] in ("queued", "running"):
            assert time.monotonic() < end, shown
            time.sleep(0.2)
            shown = client.get(f"/v1/requests/{told.json()['id']}").json()
    balance = system.balance(account)
    assert (balance["held_nanos"], balance["spent_nanos"]) == (0, shown["charge_nanos"])
    return shown


def opened(shown: dict[str, Any]) -> tuple[float, float, int, tuple[int, int]]:
    """Fetch and decode the video: the lengths of picture and sound, the frames, the size."""
    import av

    data = httpx.get(shown["output"]["media"][0]["url"]).content
    with av.open(io.BytesIO(data)) as film:
        video, audio = film.streams.video[0], film.streams.audio[0]
        seen, heard = (float(stream.duration * stream.time_base) for stream in (video, audio))  # type: ignore[operator]
        frames = sum(1 for _ in film.decode(video=0))
        size = (video.width, video.height)
    with av.open(io.BytesIO(data)) as film:
        loudest = max(abs(frame.to_ndarray()).max() for frame in film.decode(audio=0))
    assert loudest > 0.001
    return seen, heard, frames, size


def test_a_face_says_a_text(heads: System) -> None:
    shown = call(heads, "head", text=TEXT, fps=8, size="64x64", seed=7)
    assert shown["status"] == "succeeded", shown
    seen, heard, frames, size = opened(shown)
    assert heard > 1.5
    assert seen == pytest.approx(heard, abs=0.15)
    assert frames == pytest.approx(heard * 8, abs=2)
    assert size == (64, 64)
    usage = shown["usage"]
    assert (usage["characters"], usage["pixels"]) == (len(TEXT), frames * 64 * 64)
    assert usage["video_ms"] == pytest.approx(heard * 1000, abs=60)
    assert shown["charge_nanos"] == pytest.approx(usage["video_ms"] * 50_000, abs=1)
    assert [(one["step"], one["model"]) for one in shown["attempts"]] == [("speech", "espeak-ng"), ("film", "tiny-ltx")]
    assert all(one["phases_ms"]["forward"] > 0 for one in shown["attempts"])
    left_ms = shown["total_ms"] - sum(shown["phases_ms"].values())
    assert -1500 < left_ms - 0.05 * shown["total_ms"] < 5000, "what lies between the phases is the machine's"


def test_a_face_moves_for_as_long_as_a_vits_speaks(heads: System) -> None:
    shown = call(heads, "hissing-head", text="Mind the gap.")
    assert shown["status"] == "succeeded", shown
    seen, heard, _, _ = opened(shown)
    assert seen == pytest.approx(heard, abs=0.15)
    assert [one["model"] for one in shown["attempts"]] == ["tiny-vits", "tiny-ltx"]


def test_a_voice_that_nobody_has_is_refused_with_the_step_and_costs_nothing(heads: System) -> None:
    shown = call(heads, "head", text="Hello.", voice="nobody-speaks-so")
    assert (shown["status"], shown["charge_nanos"]) == ("failed", 0)
    assert "Step speech (espeak-ng)" in shown["error"]["message"]
