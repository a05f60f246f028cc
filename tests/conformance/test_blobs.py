"""Every backend of the blob store keeps to the same port."""

import asyncio
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.blobs.choice import open_blobs
from gateway.blobs.store import BlobMissing, BlobPlace, BlobsAway, BlobStore
from tests.buckets import new_bucket

DAY = "2026/11/21"
LARGE = 12 * 1024 * 1024 + 7
NAMES = [f"{DAY}/a-1.wav", f"{DAY}/a-10.wav", f"{DAY}/a-2.wav", f"{DAY}.d/x.wav", "2026/11/3/a.wav", "files/2026/z.bin"]


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> BlobPlace:
    """Answer where blobs lie: each backend in turn, empty."""
    if request.param == "folder":
        return BlobPlace(url=f"file://{tmp_path}/blobs")
    return new_bucket(request.getfixturevalue("s3_endpoint"))


@pytest.fixture
def blobs(place: BlobPlace) -> BlobStore:
    """Answer an empty store."""
    return open_blobs(place)


async def pieces(data: bytes, each: int = 700_001) -> AsyncIterator[bytes]:
    for at in range(0, len(data), each):
        yield data[at : at + each]


async def whole(blobs: BlobStore, name: str, start: int = 0, end: int | None = None) -> bytes:
    return b"".join([piece async for piece in await blobs.read(name, start, end)])


@pytest.mark.parametrize("size", [0, 1, 300_000, LARGE])
async def test_a_blob_comes_back_as_it_went_in(blobs: BlobStore, size: int) -> None:
    """Small ones in one go, large ones in parts, whether from memory, from a file or as they come."""
    data = os.urandom(size)
    file = io.BytesIO(data)
    file.seek(size // 2)  # its beginning counts, not where it stands
    for at, source in enumerate((data, file, pieces(data))):
        name = f"{DAY}/x-{at}.bin"
        assert await blobs.put(name, source) == size
        assert await blobs.get(name) == data
        assert await whole(blobs, name) == data
        assert (await blobs.head(name)).size_bytes == size


async def test_a_part_is_read_from_where_to_before_where(blobs: BlobStore) -> None:
    data = bytes(range(256)) * 4096
    await blobs.put("a/b.bin", data)
    for start, end in (
        (0, 1),
        (5, 10),
        (len(data) - 3, len(data)),
        (700_000, None),
        (0, None),
        (17, 17),
        (9, 9_000_000),
    ):
        assert await whole(blobs, "a/b.bin", start, end) == data[start:end]


async def test_what_is_not_there_is_missing(blobs: BlobStore) -> None:
    name = f"{DAY}/none.wav"
    for look in (blobs.get, blobs.head, blobs.read):
        with pytest.raises(BlobMissing):
            await look(name)
    await blobs.delete([name])


async def test_a_blob_is_replaced_whole_and_its_tag_changes(blobs: BlobStore) -> None:
    await blobs.put("a/b.bin", b"first of all")
    first = await blobs.head("a/b.bin")
    await blobs.put("a/b.bin", b"second")
    assert await blobs.get("a/b.bin") == b"second"
    assert (await blobs.head("a/b.bin")).etag not in ("", first.etag)


async def test_a_source_that_breaks_off_leaves_nothing(blobs: BlobStore) -> None:
    async def broken() -> AsyncIterator[bytes]:
        async for piece in pieces(os.urandom(LARGE)):
            yield piece
        raise RuntimeError("the caller is gone")

    with pytest.raises(Exception, match=r"gone|answer"):
        await blobs.put("a/b.bin", broken())
    with pytest.raises(BlobMissing):
        await blobs.head("a/b.bin")
    assert await blobs.page() == []
    assert await blobs.tidy(-1.0) == 0, "nothing to tidy either"


async def test_deleted_blobs_are_gone_and_the_others_stay(blobs: BlobStore) -> None:
    for name in NAMES:
        await blobs.put(name, b"x")
    await blobs.delete([*NAMES[:3], f"{DAY}/never.wav"])
    assert [head.name for head in await blobs.page()] == sorted(NAMES[3:])


async def test_names_come_in_their_order_below_a_folder_and_after_a_name(blobs: BlobStore) -> None:
    for name in NAMES:
        await blobs.put(name, b"x")
    ordered = sorted(NAMES)
    assert [head.name for head in await blobs.page()] == ordered
    for at, name in enumerate(ordered):
        assert [head.name for head in await blobs.page(after=name)] == ordered[at + 1 :]
    below = [name for name in ordered if name.startswith(f"{DAY}/")]
    assert [head.name for head in await blobs.page(f"{DAY}/")] == below
    assert [head.name for head in await blobs.page(f"{DAY}/", after=below[0])] == below[1:]
    assert await blobs.page("nothing/") == []


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../b", "a//b", "a/", "", ".hidden", "a/.part", "a\0b", "é", "a b"]
)
async def test_a_name_that_is_none_is_refused_before_anything_is_looked_for(blobs: BlobStore, name: str) -> None:
    for call in (blobs.get(name), blobs.head(name), blobs.read(name), blobs.put(name, b""), blobs.delete([name])):
        with pytest.raises(ValueError, match="name"):
            await call


async def test_a_page_has_a_thousand_names_and_the_next_goes_on(blobs: BlobStore) -> None:
    names = [f"{DAY}/n-{number:04}.bin" for number in range(1005)]
    gate = asyncio.Semaphore(16)

    async def put(name: str) -> None:
        async with gate:
            await blobs.put(name, b"x")

    await asyncio.gather(*(put(name) for name in names))
    first = [head.name for head in await blobs.page()]
    assert first == names[:1000]
    assert [head.name for head in await blobs.page(after=first[-1])] == names[1000:]


async def test_a_store_that_does_not_answer_is_away(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where a folder should be")
    nowhere = BlobPlace(url="s3://bucket", endpoint="http://127.0.0.1:9", key_id="k", secret="s", region="r")
    for place in (BlobPlace(url=str(tmp_path / "file")), nowhere):
        with pytest.raises(BlobsAway) as told:
            await open_blobs(place).put("a/b.bin", b"x")
        assert str(tmp_path) not in str(told.value)
        assert "127.0.0.1" not in str(told.value)
