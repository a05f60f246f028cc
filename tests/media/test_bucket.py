"""A whole system whose media lie in a bucket: in, through, out, and gone."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gateway.blobs.choice import open_blobs
from gateway.blobs.store import BlobPlace
from gateway.media.addresses import Addresses
from tests.buckets import new_bucket
from tests.media.samples import film, picture
from tests.media.serving import CATALOG, SETTINGS
from tests.system import System, running_system


@pytest.fixture(scope="module")
def place(s3_endpoint: str) -> BlobPlace:
    """Answer an empty bucket."""
    return new_bucket(s3_endpoint)


@pytest.fixture(scope="module")
def in_bucket(tmp_path_factory: pytest.TempPathFactory, place: BlobPlace) -> Iterator[System]:
    """Answer a running system that keeps its media there."""
    folder = tmp_path_factory.mktemp("bucket")
    folder.chmod(0o711)
    keys = {"ENDPOINT": place.endpoint, "REGION": place.region, "KEY_ID": place.key_id, "SECRET": place.secret}
    environ = {f"FAREGATE_{side}BLOB_{name}": value for side in ("", "WORKER_") for name, value in keys.items()}
    options = ("--catalog", str(CATALOG), "--blob-url", place.url)
    with running_system(folder / "data", *options, environ=SETTINGS | environ) as running_now:
        running_now.wait_ready("film")
        yield running_now


async def test_media_go_through_a_bucket_from_upload_to_address(in_bucket: System, place: BlobPlace) -> None:
    with in_bucket.client() as client:
        file = client.post("/v1/files", files={"file": ("a.mp4", film())}, data={"purpose": "vision"}).json()
        body = {"model": "film", "input": {"video": file["id"], "scale": 2}}
        told = client.post("/v1/requests", json=body, headers={"prefer": "wait=60"}).json()
        assert told["status"] == "succeeded", told
        whole = client.get(f"/v1/requests/{told['id']}/output")
        assert whole.status_code == 200
        assert whole.content[4:8] == b"ftyp"
    blobs = open_blobs(place)
    (name,) = [head.name for head in await blobs.page() if head.name.endswith(f"{told['id']}-1-0.mp4")]
    address = Addresses(in_bucket.admin_key, in_bucket.base_url, 600).signed_url(name)
    async with httpx.AsyncClient(timeout=60) as anyone:
        part = await anyone.get(address, headers={"range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, b"ftyp")
    with in_bucket.client() as client:
        assert client.delete(f"/v1/files/{file['id']}").status_code == 200
    assert file["id"] not in {head.name.rpartition("/")[2].partition(".")[0] for head in await blobs.page()}


def verified(admin: httpx.Client, within_s: float = 120.0) -> dict[str, Any]:
    """Have a settler verify the books; answers what it found."""
    job, end = admin.post("/admin/api/books/verify").json(), time.monotonic() + within_s
    while job["run_id"] is None:
        assert time.monotonic() < end, job
        time.sleep(0.2)
        job = admin.get(f"/admin/api/books/jobs/{job['id']}").json()
    report: dict[str, Any] = admin.get(f"/admin/api/books/runs/{job['run_id']}").json()["report"]
    return report


def test_the_books_hold_over_a_bucket(in_bucket: System) -> None:
    with in_bucket.client() as client:
        body = {"model": "picture", "input": {"prompt": "x", "image": {}}}
        assert client.post("/v1/requests", json=body).status_code == 400
        made = client.post("/v1/files", files={"file": ("a.png", picture())}, data={"purpose": "vision"}).json()
        body = {"model": "film", "input": {"image": made["id"], "frames": 4}}
        assert client.post("/v1/requests", json=body, headers={"prefer": "wait=60"}).json()["status"] == "succeeded"
    with in_bucket.admin() as admin:
        report = verified(admin)
    assert report["holds"]
    (media,) = [check for check in report["checks"] if check["statement"].startswith("Each kept media")]
    assert media["right"] >= 1
    assert media["note"] == ""
