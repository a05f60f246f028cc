"""Outputs of several files, and of what reads and removes them, in a folder and in a bucket."""

from pathlib import Path
from typing import Any

import pytest

from gateway.blobs.choice import open_blobs
from gateway.blobs.store import BlobMissing, BlobPlace, BlobStore
from gateway.contract.events import Frame, GalleryOutput, MediaOutput, TextOutput
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import ImageInput, Media
from gateway.contract.request import Request, encode_input
from tests.buckets import new_bucket
from workers.engine import EngineError, Run
from workers.outputs import OutputNotStored, Outputs, inline

GIVEN = ImageInput(prompt="x")
PICTURE = MediaOutput("image/png", 4, data=b"\x89PNG", width=8, height=8, seed=7)
FILM = MediaOutput("video/mp4", 5, data=b"films", duration_ms=10, frames=3)
STILL = MediaOutput("image/jpeg", 5, data=b"still", role="thumbnail")


@pytest.fixture(params=["folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "folder":
        return open_blobs(BlobPlace(url=str(tmp_path / "blobs")))
    return open_blobs(new_bucket(request.getfixturevalue("s3_endpoint")))


def asked(**fields: Any) -> Request:
    return Request(new_request_id(), 1, "m", "text-to-image", encode_input(GIVEN), 1, **fields)


def run_of(request: Request, attempt: int = 1) -> Run:
    def nowhere(_: Request, __: Frame) -> None:
        return

    return Run(request, GIVEN, attempt, nowhere)


async def test_each_file_of_a_gallery_has_the_name_of_its_attempt_and_its_place(blobs: BlobStore) -> None:
    outputs, run = Outputs(blobs, 1000), run_of(asked(keep=True), attempt=3)
    gallery = GalleryOutput([FILM, STILL])
    assert outputs.to_store(run.request, gallery)
    stored = await outputs.store(run, gallery)
    assert isinstance(stored, GalleryOutput)
    ends = [item.blob.rpartition("/")[2] for item in stored.items]
    assert ends == [f"{run.request.id}-3-0.mp4", f"{run.request.id}-3-1.jpg"]
    assert [(item.data, item.size_bytes, item.role) for item in stored.items] == [(b"", 5, ""), (b"", 5, "thumbnail")]
    assert (stored.items[0].duration_ms, stored.items[0].frames) == (10, 3)
    assert [await blobs.get(item.blob) for item in stored.items] == [b"films", b"still"]
    assert run.phases.store_us > 0


async def test_one_file_keeps_its_plain_name_and_what_is_known_of_it(blobs: BlobStore) -> None:
    outputs, run = Outputs(blobs, 1000), run_of(asked(keep=True))
    stored = await outputs.store(run, PICTURE)
    assert isinstance(stored, MediaOutput)
    assert stored.blob.endswith(f"/{run.request.id}-1.png")
    assert (stored.width, stored.height, stored.seed, stored.data) == (8, 8, 7, b"")


@pytest.mark.parametrize(
    ("fields", "output", "stored"),
    [
        ({"keep": True}, PICTURE, True),
        ({}, PICTURE, False),
        ({}, GalleryOutput([PICTURE] * 3), True),
        ({}, GalleryOutput([PICTURE] * 2), False),
        ({"stream": True}, GalleryOutput([PICTURE] * 9), False),
        ({"stream": True, "keep": True}, PICTURE, True),
        ({"keep": True}, TextOutput([]), False),
        ({"keep": True}, GalleryOutput([]), False),
        ({"keep": True}, MediaOutput("image/png", 4, blob="a/b.png"), False),
    ],
)
def test_what_goes_to_the_store(fields: dict[str, Any], output: Any, stored: bool, tmp_path: Path) -> None:
    """What is kept, and what is too large for the way through Redis: all files of an answer together."""
    outputs = Outputs(open_blobs(BlobPlace(url=str(tmp_path))), inline_bytes=10)
    assert outputs.to_store(asked(**fields), output) is stored


def test_who_streamed_gets_no_content_again() -> None:
    told = inline(asked(stream=True), GalleryOutput([PICTURE, STILL]))
    assert isinstance(told, GalleryOutput)
    assert [(item.data, item.size_bytes) for item in told.items] == [(b"", 4), (b"", 5)]
    assert inline(asked(), PICTURE) == PICTURE


async def test_what_lost_is_removed_and_nothing_of_other_attempts(blobs: BlobStore) -> None:
    outputs, request = Outputs(blobs, 0), asked(keep=True)
    lost = await outputs.store(run_of(request, attempt=1), GalleryOutput([FILM, STILL]))
    won = await outputs.store(run_of(request, attempt=2), GalleryOutput([FILM, STILL]))
    assert isinstance(won, GalleryOutput)
    outputs.discard(request.id, 1, won)
    outputs.discard(request.id, 1, lost)
    outputs.discard(request.id, 1, None)
    await outputs.close()
    assert [head.name for head in await blobs.page()] == [item.blob for item in won.items]


async def test_an_input_is_read_and_one_that_is_gone_fails_its_request(blobs: BlobStore) -> None:
    outputs = Outputs(blobs, 0)
    await blobs.put("2026/11/21/in.png", b"\x89PNG")
    media = Media(blob="2026/11/21/in.png", media_type="image/png", size_bytes=4)
    assert await outputs.read(media) == b"\x89PNG"
    await blobs.delete([media.blob])
    with pytest.raises(EngineError):
        await outputs.read(media)
    with pytest.raises(BlobMissing):
        await blobs.get(media.blob)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("[0-9]*/**/*") if path.is_file()]


async def test_a_gallery_that_does_not_fit_leaves_none_of_its_files(tmp_path: Path) -> None:
    """The second file meets a folder where it is to lie: the first one is taken back."""
    blobs = open_blobs(BlobPlace(url=str(tmp_path)))
    outputs, run = Outputs(blobs, 0), run_of(asked(keep=True))
    first = await outputs.store(run, GalleryOutput([FILM]))
    assert isinstance(first, GalleryOutput)
    (tmp_path / first.items[0].blob.replace("-0.mp4", "-1.jpg")).mkdir()
    with pytest.raises(OutputNotStored):
        await outputs.store(run, GalleryOutput([FILM, STILL]))
    await outputs.close()
    assert files(tmp_path) == []
