"""Results are copied from public addresses only, within limits, and are what their bytes say."""

from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.contract.ids import new_request_id
from gateway.contract.inputs import ImageInput
from gateway.contract.request import Request
from gateway.media.limits import MediaLimits
from gateway.net.addresses import Allowed
from tests.media.samples import data_url, film, picture, sound
from tests.upstreams.openai import OpenAi
from tests.upstreams.serving import HOST, Reply, standing
from workers.engine import Run
from workers.engines.upstream.failures import UpstreamFailed
from workers.engines.upstream.media import Parcels, Traffic


@pytest.fixture
def there() -> Iterator[OpenAi]:
    stand_in = OpenAi()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
async def parcels() -> AsyncIterator[Parcels]:
    traffic = Traffic(Allowed.parse(f"{HOST}/32"), MediaLimits(image_bytes=20_000, image_pixels=100_000))
    request = Request(new_request_id(), 1, "m", "text-to-image", b"", 1)
    yield Parcels(Run(request, ImageInput(prompt="x"), 1, lambda *_: None), lambda: traffic)
    await traffic.close()


async def failure(parcels: Parcels, url: str) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as failed:
        await parcels.fetch(url, kind="image")
    assert failed.value.reason == "upstream_error"
    assert "127.0" not in f"{failed.value} {failed.value.detail}"
    return failed.value


async def test_a_result_is_copied_and_measured(there: OpenAi, parcels: Parcels) -> None:
    there.files["/redirect"] = Reply(status=302, headers={"location": "/files/picture.png"})
    for url in (there.file("picture.png"), f"{there.url}/redirect", data_url(picture(64, 48), "image/gif")):
        made = await parcels.fetch(url, kind="image")
        assert (made.media_type, made.width, made.height, made.data) == ("image/png", 64, 48, picture(64, 48))
    heard = await parcels.take(sound("mp3", "libmp3lame", 2), kind="audio")
    assert heard.media_type == "audio/mpeg"
    assert 1900 < heard.duration_ms < 2200
    seen = await parcels.take(film(16), kind="video", declared="image/png")
    assert (seen.media_type, seen.frames, seen.duration_ms) == ("video/mp4", 16, 1000)
    raw = await parcels.take(b"\0" * 48_000, kind="audio", declared="audio/pcm")
    assert (raw.media_type, raw.duration_ms) == ("audio/pcm", 1000)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/x.png",
        "http://localhost/x.png",
        "http://169.254.169.254/latest",
        "http://[::1]/x",
        "http://2130706433/",
        "file:///etc/passwd",
        "ftp://example.com/x",
        "",
    ],
)
async def test_a_result_at_an_address_that_is_not_public_is_refused(parcels: Parcels, url: str) -> None:
    assert "not public" in (await failure(parcels, url)).detail


async def test_a_redirect_to_such_an_address_is_refused(there: OpenAi, parcels: Parcels) -> None:
    there.files["/files/away"] = Reply(status=302, headers={"location": "http://127.0.0.1:9/x.png"})
    there.files["/files/round"] = Reply(status=302, headers={"location": "/files/round"})
    assert "not public" in (await failure(parcels, there.file("away"))).detail
    assert "not public" in (await failure(parcels, there.file("round"))).detail


async def test_results_over_a_limit_of_another_kind_or_damaged_are_refused(there: OpenAi, parcels: Parcels) -> None:
    large = picture(64, 48) + b"\0" * 30_000
    for name, body in {
        "large": large,
        "pixels": picture(400, 400),
        "film": film(16),
        "half": picture(64, 48)[:60],
        "page": b"<html>no</html>",
        "none": b"",
    }.items():
        there.files[f"/files/{name}"] = Reply(body=body, media_type="image/png")
        await failure(parcels, there.file(name))
    there.files["/files/gone"] = Reply(status=404)
    await failure(parcels, there.file("gone"))


async def test_no_key_goes_where_results_lie(there: OpenAi, parcels: Parcels) -> None:
    await parcels.fetch(there.file("picture.png"), kind="image")
    assert "authorization" not in there.seen[0].headers
    assert not any(there.key in value for value in there.seen[0].headers.values())
