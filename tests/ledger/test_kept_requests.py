"""Requests that are kept are listed by task and owner, open and finished ones, and forgotten by their owner alone."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy.dialects import postgresql

from gateway.contract.events import GalleryOutput, MediaOutput, encode_output
from gateway.contract.tasks import Task
from gateway.ledger.accounts import NewAccount
from gateway.ledger.kept_requests import KeptRequests, Page, finished_page
from tests.ledger.scene import Scene

VIDEOS: tuple[Task, ...] = ("text-to-video", "image-to-video", "video-upscale", "talking-head")
OUTPUT = GalleryOutput([MediaOutput("video/mp4", 9, blob="a/b.mp4"), MediaOutput("image/jpeg", 9, blob="a/c.jpg")])


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


async def film(scene: Scene, task: Task = "text-to-video", *, keep: bool = True) -> str:
    output = encode_output(OUTPUT)
    return await scene.call("painter", task=task, keep=keep, output=output)


async def ids(scene: Scene, **page: object) -> tuple[list[str], bool]:
    records, more = await KeptRequests(scene.engine).page(scene.account.id, Page(tasks=VIDEOS, **page))  # type: ignore[arg-type]
    return [record.id for record in records], more


async def test_open_and_finished_ones_are_listed_in_the_order_of_their_admission(scene: Scene) -> None:
    first = await film(scene)
    waiting = await scene.admit("painter", task="image-to-video", keep=True)
    last = await film(scene, "talking-head")
    await film(scene, "text-to-image")
    await film(scene, keep=False)
    assert await ids(scene) == ([last, waiting, first], False)
    assert await ids(scene, newest_first=False) == ([first, waiting, last], False)
    assert await ids(scene, limit=2) == ([last, waiting], True)
    assert await ids(scene, limit=2, after=waiting) == ([first], False)
    assert await ids(scene, after=waiting, newest_first=False) == ([last], False)
    records, _ = await KeptRequests(scene.engine).page(scene.account.id, Page(tasks=VIDEOS))
    assert [record.finished_us is None for record in records] == [False, True, False]
    assert records[0].output == OUTPUT


async def test_only_its_owner_sees_and_forgets_a_request(scene: Scene) -> None:
    kept, video = KeptRequests(scene.engine), await film(scene)
    stranger = await scene.accounts.create(NewAccount(name="Eve", balance_nanos=0))
    assert await kept.page(stranger.id, Page(tasks=VIDEOS)) == ([], False)
    assert await kept.forget(stranger.id, video) is None
    assert await ids(scene) == ([video], False)
    assert await kept.forget(scene.account.id, video) == OUTPUT
    assert await kept.forget(scene.account.id, video) is None
    assert await ids(scene) == ([], False)
    assert (await scene.books.verify()).holds


async def test_a_list_reads_the_index_of_videos_and_no_other_usage(scene: Scene) -> None:
    await film(scene)
    query = finished_page(scene.account.id, Page(tasks=VIDEOS))
    text = str(query.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}))  # type: ignore[no-untyped-call]
    connection = await asyncpg.connect(scene.database_url)
    await connection.execute("set enable_seqscan = off")
    plan = "\n".join(row[0] for row in await connection.fetch("explain " + text))
    await connection.close()
    assert "usage_account_id_id_video_idx" in plan


async def test_requests_are_counted_and_listed_by_model(scene: Scene) -> None:
    kept = KeptRequests(scene.engine)
    first = await film(scene)
    waiting = await scene.admit("painter", task="image-to-video", keep=True)
    await film(scene, keep=False)
    records, _ = await kept.page(scene.account.id, Page(tasks=VIDEOS))
    model_id = records[0].model_id
    for page, counted in ((Page(tasks=VIDEOS), 2), (Page(tasks=VIDEOS, limit=1), 2), (Page(tasks=("music",)), 0)):
        assert await kept.count(scene.account.id, page) == counted
    for asked, found in ((model_id, [waiting, first]), (model_id + 1, [])):
        page = Page(tasks=VIDEOS, model_id=asked)
        assert [record.id for record in (await kept.page(scene.account.id, page))[0]] == found
        assert await kept.count(scene.account.id, page) == len(found)


async def test_a_list_of_all_media_reads_the_index_of_media(scene: Scene) -> None:
    query = finished_page(scene.account.id, Page(tasks=("text-to-image", "music", *VIDEOS)))
    text = str(query.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}))  # type: ignore[no-untyped-call]
    connection = await asyncpg.connect(scene.database_url)
    await connection.execute("set enable_seqscan = off")
    plan = "\n".join(row[0] for row in await connection.fetch("explain " + text))
    await connection.close()
    assert "usage_account_id_id_media_idx" in plan
