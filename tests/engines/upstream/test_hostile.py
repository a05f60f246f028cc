"""Results and answers of an upstream that means harm, or is broken: refused in words that tell nothing, and bounded."""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.upstream.driver import Driver, driving, model
from tests.media.samples import picture, sound
from tests.upstreams.gmi import PATH, Gmi, Plan
from tests.upstreams.serving import Reply, standing

NAME = "seedream-5.0-lite"
MEGABYTE = b"\0" * 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[Gmi]:
    stand_in = Gmi()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
def gmi(server: Gmi) -> Gmi:
    server.plans.clear()
    server.faults.clear()
    server.seen.clear()
    return server


@pytest.fixture
async def driver(gmi: Gmi, tmp_path: Path) -> AsyncIterator[Driver]:
    models = (model(NAME, "text-to-image"), model("Veo3", "text-to-video"))
    async with driving("gmi", gmi, tmp_path, *models, path=PATH) as made:
        yield made


async def refused(driver: Driver, gmi: Gmi, url: str) -> str:
    """Let the upstream give this address as its result; answers what the operator reads."""
    gmi.plans[NAME] = Plan(looks=0, outcome={"media_urls": [{"id": "0", "url": url}]})
    attempt = driver.start(NAME, "text-to-image", prompt="a hill")
    assert await attempt.reason() == "upstream_error"
    assert attempt.units.images == 0
    words = f"{await attempt.error()} {attempt.step.detail}"
    assert url not in words
    return words


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/files/picture.png",
        "http://127.1:{port}/files/picture.png",
        "http://[::1]:{port}/files/picture.png",
        "http://0x7f000001:{port}/files/picture.png",
        "http://localhost:{port}/files/picture.png",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/x.png",
        "file:///etc/passwd",
        "ftp://example.com/x.png",
        "http://user:pass@127.0.0.2:{port}/files/picture.png",
    ],
)
async def test_results_at_addresses_that_are_not_public_are_not_fetched(driver: Driver, gmi: Gmi, url: str) -> None:
    await refused(driver, gmi, url.format(port=gmi.url.rpartition(":")[2]))
    assert gmi.asked("GET", "/files/picture.png") == []


async def test_a_redirect_to_a_private_address_is_not_followed(driver: Driver, gmi: Gmi) -> None:
    for number, target in enumerate(("http://127.0.0.1:1/x", "http://169.254.169.254/", "file:///etc/passwd")):
        gmi.files[f"/files/away{number}"] = Reply(302, headers={"location": target})
        await refused(driver, gmi, gmi.file(f"away{number}"))


async def test_redirects_without_an_end_are_given_up(driver: Driver, gmi: Gmi) -> None:
    gmi.files["/files/round"] = Reply(302, headers={"location": "/files/round"})
    await refused(driver, gmi, gmi.file("round"))


async def test_a_redirect_to_an_allowed_address_is_followed_without_the_key(driver: Driver, gmi: Gmi) -> None:
    gmi.files["/files/moved"] = Reply(302, headers={"location": gmi.file("picture.png")})
    gmi.plans[NAME] = Plan(looks=0, outcome={"media_urls": [{"url": gmi.file("moved")}]})
    await driver.start(NAME, "text-to-image", prompt="a hill").output()
    assert all("authorization" not in asked.headers for asked in gmi.asked("GET", "/files/"))


async def test_a_result_over_the_limit_is_not_taken(driver: Driver, gmi: Gmi) -> None:
    gmi.files["/files/huge"] = Reply(200, [MEGABYTE] * 52, "image/png")
    await refused(driver, gmi, gmi.file("huge"))


WRONG: dict[str, Callable[[], Reply]] = {
    "a page": lambda: Reply(200, b"<html><script>alert(1)</script></html>", "image/png"),
    "a sound": lambda: Reply(200, sound(), "image/png"),
    "nothing": lambda: Reply(200, b"", "image/png"),
    "half": lambda: Reply(200, picture(64, 48)[:60], "image/png"),
    "gone": lambda: Reply(404, b"", "text/plain"),
    "a pickle": lambda: Reply(200, b"\x80\x04\x95\x0e\x00cos\nsystem\n.", "image/png"),
}


@pytest.mark.parametrize("case", list(WRONG))
async def test_a_result_of_another_kind_is_not_passed_on(driver: Driver, gmi: Gmi, case: str) -> None:
    gmi.files["/files/wrong"] = WRONG[case]()
    await refused(driver, gmi, gmi.file("wrong"))


async def test_a_picture_of_many_pixels_is_not_passed_on(driver: Driver, gmi: Gmi) -> None:
    gmi.files["/files/bomb"] = Reply(200, picture(12_000, 12_000), "image/png")
    await refused(driver, gmi, gmi.file("bomb"))


ANSWERS: dict[str, bytes] = {
    "no json": b"<html>",
    "nan": b'{"request_id": "a", "status": NaN}',
    "infinity": b'{"request_id": "a", "created_at": 1e999999}',
    "a list": b"[]",
    "null": b"null",
    "deep": b'{"outcome":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no utf-8": b'{"request_id": "\xff\xfe"}',
    "an id that is a path": b'{"request_id": "../../admin", "status": "queued"}',
    "an id that is a number": b'{"request_id": 5, "status": "queued"}',
}


@pytest.mark.parametrize("case", list(ANSWERS))
async def test_an_answer_that_cannot_be_read_is_a_failure_and_no_crash(driver: Driver, gmi: Gmi, case: str) -> None:
    took_s = 3.0
    for _ in range(3):
        gmi.fail(Reply(200, ANSWERS[case]), on="/requests", method="POST")
        began = time.monotonic()
        assert await driver.start("Veo3", "text-to-video", prompt="a hill").reason() == "upstream_unknown"
        took_s = min(took_s, time.monotonic() - began)
        if took_s < 3:  # else the machine may have paused
            break
    assert took_s < 3
    assert not [each for each in gmi.seen if "admin" in each.path]


async def test_ten_megabytes_of_json_are_read_and_what_they_echo_goes_nowhere(driver: Driver, gmi: Gmi) -> None:
    outcome: dict[str, Any] = {"noise": "x" * 10_000_000, "media_urls": [{"url": gmi.file("picture.png")}]}
    gmi.plans[NAME] = Plan(looks=0, outcome=outcome)
    await driver.start(NAME, "text-to-image", prompt="a hill").output()


async def test_an_answer_beyond_all_bounds_is_cut(driver: Driver, gmi: Gmi) -> None:
    gmi.fail(Reply(200, [b" " * 1024 * 1024] * 70), on="/requests", method="POST")
    assert await driver.start("Veo3", "text-to-video", prompt="a hill").reason() == "upstream_unknown"


async def test_no_word_of_an_upstream_brings_a_key_or_an_address_out(driver: Driver, gmi: Gmi) -> None:
    words = f"Bearer {gmi.key} was refused at https://10.1.2.3/internal?token=abc \x1b[31m\r\nset-cookie: a=b"
    gmi.plans["Veo3"] = Plan(looks=0, status="failed", outcome={"error": words})
    attempt = driver.start("Veo3", "text-to-video", prompt="a hill")
    told = f"{await attempt.error()} {attempt.step.detail}"
    assert gmi.key not in told
    assert "10.1.2.3" not in told
    assert told.isprintable()
