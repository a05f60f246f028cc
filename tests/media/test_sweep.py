"""The sweeper leaves no orphan and takes nothing too early, in a folder and in a bucket."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.blobs.choice import open_blobs
from gateway.blobs.local import LocalBlobs
from gateway.blobs.names import input_name, output_name, upload_name
from gateway.blobs.store import PAGE, BlobPlace, BlobStore
from gateway.contract.events import MediaOutput, encode_output
from gateway.contract.ids import new_request_id
from gateway.media.files import Files, Upload
from gateway.media.inlet import Inlet
from gateway.media.limits import MediaLimits
from gateway.media.probe.pool import Probes
from gateway.media.sweep import UNKNOWN_S, MediaSweeper, Swept
from tests.buckets import new_bucket
from tests.ledger.scene import Scene

KEEP_S = 3600


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


@pytest.fixture(params=["folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "folder":
        return open_blobs(BlobPlace(url=str(tmp_path / "blobs")))
    return open_blobs(new_bucket(request.getfixturevalue("s3_endpoint")))


@pytest.fixture
def sweeper(scene: Scene, blobs: BlobStore) -> MediaSweeper:
    return MediaSweeper(scene.engine, blobs, keep_s=KEEP_S, every_s=0.05)


async def names(blobs: BlobStore) -> set[str]:
    return {head.name for head in await blobs.page()}


async def put(blobs: BlobStore, *wanted: str) -> set[str]:
    for name in wanted:
        await blobs.put(name, b"x")
    return set(wanted)


def born(seconds_ago: float, prefix: str = "req_") -> str:
    """Make an id that was made a while ago."""
    ms = int((time.time() - seconds_ago) * 1000)
    return f"{prefix}{ms:012x}{new_request_id()[16:]}"


async def age(scene: Scene, request_id: str, seconds: int) -> None:
    """Let a finished request have ended earlier, and its output expire as much earlier."""
    id_ = request_id[4:]
    await scene.tamper(
        "alter table usage disable trigger append_only",
        f"update usage set finished_at = finished_at - interval '{seconds} s' where id = '{id_}'",
        f"update request_output set expires_at = expires_at - interval '{seconds} s' where id = '{id_}'",
        "alter table usage enable trigger append_only",
    )


async def test_media_of_open_requests_stay_and_those_of_lost_attempts_go(
    scene: Scene, blobs: BlobStore, sweeper: MediaSweeper
) -> None:
    waiting, ended = await scene.admit(keep=True), await scene.admit(keep=True)
    won = output_name(ended, 2, "video/mp4", 0)
    await scene.settle(ended, attempt=2, output=encode_output(MediaOutput("video/mp4", 1, blob=won)))
    kept = await put(
        blobs,
        input_name(waiting, 0, "image/png"),
        output_name(waiting, 1, "image/png"),
        input_name(ended, 0, "image/png"),
        won,
        output_name(ended, 2, "image/jpeg", 1),
    )
    await put(blobs, output_name(ended, 1, "video/mp4", 0), output_name(ended, 3, "video/mp4", 0))
    assert await sweeper.round() == Swept(looked_at=7, removed=2)
    assert await names(blobs) == kept
    assert (await scene.books.verify()).holds


async def test_media_go_when_the_time_of_their_account_is_over(
    scene: Scene, blobs: BlobStore, sweeper: MediaSweeper
) -> None:
    """Kept outputs go with their rows; media of requests that kept none count from the end of the request."""
    await scene.accounts.set_retention(scene.account.id, 600)
    kept, passing = await scene.admit(keep=True), await scene.admit()
    for each in (kept, passing):
        await scene.settle(each, output=encode_output(MediaOutput("image/png", 1, blob="x/y.png")))
        await put(blobs, output_name(each, 1, "image/png"), input_name(each, 0, "image/png"))
        await age(scene, each, 500)
    assert (await sweeper.round()).removed == 0
    for each in (kept, passing):
        await age(scene, each, 101)
    assert (await sweeper.round()).removed == 4
    assert await names(blobs) == set()


async def test_what_belongs_to_nothing_goes_after_a_day_and_not_before(
    scene: Scene, blobs: BlobStore, sweeper: MediaSweeper
) -> None:
    fresh = await put(
        blobs,
        input_name(born(UNKNOWN_S - 600), 0, "image/png"),
        output_name(born(UNKNOWN_S - 600), 1, "image/png"),
        upload_name(born(UNKNOWN_S - 600, "file_"), "image/png"),
    )
    foreign = await put(blobs, "something/else.txt", "2026/11/21/notes.txt")
    await put(
        blobs,
        input_name(born(UNKNOWN_S + 600), 0, "image/png"),
        output_name(born(UNKNOWN_S + 600), 1, "image/png"),
        upload_name(born(UNKNOWN_S + 600, "file_"), "image/png"),
    )
    assert (await sweeper.round()).removed == 3
    assert await names(blobs) == fresh | foreign


async def test_uploaded_files_go_with_their_rows(scene: Scene, blobs: BlobStore, sweeper: MediaSweeper) -> None:
    probes = Probes(1)
    files = Files(scene.engine, Inlet(blobs, probes, MediaLimits(), 10**9), keep_s=KEEP_S, most_bytes=10**6)

    async def upload(keep_s: int | None) -> str:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"words"

        received = await files.receive(pieces())
        kept = await files.keep(scene.account.id, received, Upload(filename="a", purpose="batch", keep_s=keep_s))
        return kept.blob

    long, short = await upload(None), await upload(600)
    await probes.close()
    assert await names(blobs) == {long, short}
    assert (await sweeper.round()).removed == 0
    await scene.tamper(f"update file set expires_at = expires_at - interval '600 s' where blob = '{short}'")
    assert (await sweeper.round()).removed == 1
    assert await names(blobs) == {long}
    (left,) = await files.page(scene.account.id, after=None, limit=10, order="asc", purpose=None)
    assert left.blob == long


async def test_a_round_is_bounded_and_the_next_goes_on(scene: Scene, blobs: BlobStore, sweeper: MediaSweeper) -> None:
    """Files of other systems in the same place are passed over, and do not hold up what comes after them."""
    if not isinstance(blobs, LocalBlobs):
        pytest.skip("a thousand files in a folder say as much")
    await put(blobs, *(f"2020/01/01/other-{number:04}.bin" for number in range(PAGE)))
    old = input_name(born(UNKNOWN_S + 600), 0, "image/png")
    await put(blobs, old)
    assert await sweeper.round() == Swept(looked_at=PAGE, removed=0)
    assert await sweeper.round() == Swept(looked_at=1, removed=1)
    assert (await sweeper.round()).looked_at == PAGE


async def test_the_sweeper_waits_while_its_store_is_away_and_stops_when_told(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where the folder should be")
    away = MediaSweeper(scene.engine, open_blobs(BlobPlace(url=str(tmp_path / "file"))), keep_s=1, every_s=0.01)
    stopping = asyncio.Event()
    task = asyncio.create_task(away.run(stopping))
    await asyncio.sleep(0.2)
    assert not task.done()
    stopping.set()
    await asyncio.wait_for(task, 60)


async def test_what_writes_left_behind_goes_after_an_hour(tmp_path: Path) -> None:
    blobs = open_blobs(BlobPlace(url=str(tmp_path)))
    await blobs.put("a/b.bin", b"x")
    leaving = tmp_path / ".partial" / "0123"
    leaving.write_bytes(b"half a fi")
    assert await blobs.tidy(3600) == 0
    assert await blobs.tidy(-1) == 1
    assert not leaving.exists()
    assert await names(blobs) == {"a/b.bin"}
