"""A worker that dies over a video: it is made again by another, charged once, and leaves one set of files."""

import os
import signal
import time

import httpx
import pytest

from tests.flow.test_requests import finished
from tests.system import System

WITHIN_S = 180.0


def progress(client: httpx.Client, request_id: str) -> float:
    return float(client.get(f"/v1/requests/{request_id}").json().get("progress") or 0)


@pytest.mark.chaos
def test_a_worker_killed_in_the_middle_of_a_video_costs_nobody_twice(media_system: System) -> None:
    media_system.wait_ready("fake-video-slow")
    account, key = media_system.account(f"killer-{time.time_ns()}", "1")
    with media_system.client(key) as client:
        video = client.post("/v1/videos", json={"model": "fake-video-slow", "prompt": "a gate"}).json()
        end = time.monotonic() + WITHIN_S
        while progress(client, video["id"]) < 0.3:
            assert time.monotonic() < end
            time.sleep(0.05)
        running = media_system.connection()["processes"]
        (pid,) = [each["pid"] for each in running if each["name"] == "worker-media-slow-1"]
        os.kill(pid, signal.SIGKILL)
        shown = finished(client, video["id"], WITHIN_S)
        assert (shown["status"], shown["attempt"], shown["lost_attempts"]) == ("succeeded", 2, 1)
        assert shown["charge_nanos"] == 100_000_000
        assert client.get(f"/v1/videos/{video['id']}/content").content[4:8] == b"ftyp"
    files = sorted(path.name for path in (media_system.data / "blobs").rglob(f"{video['id']}-*"))
    assert [name.split("-")[1] for name in files] == ["2"] * 3
    assert media_system.balance(account)["spent_nanos"] == 100_000_000
    verified = media_system.run("books", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
