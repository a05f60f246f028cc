"""Outputs at signed addresses: whole, in parts, for as long as they serve, and for nobody who changes them."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from gateway.errors import NotFound
from gateway.media.addresses import Addresses
from tests.media.samples import data_url, picture
from tests.system import System

NAME = "2026/11/21/req_01a1fd8f39ed70a58897e298f2bb4b67-1-0.png"


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def parts(url: str) -> tuple[str, str, str]:
    query = parse_qs(urlsplit(url).query)
    return urlsplit(url).path.removeprefix("/v1/blobs/"), query["expires"][0], query["signature"][0]


def test_an_address_serves_until_its_time_and_not_a_second_longer() -> None:
    clock = Clock()
    addresses = Addresses("s" * 20, "https://x.example/", 60, clock)
    url = addresses.signed_url(NAME)
    assert url.startswith(f"https://x.example/v1/blobs/{NAME}?expires=1000060&signature=")
    addresses.check(*parts(url))
    clock.now += 60
    addresses.check(*parts(url))
    clock.now += 1
    with pytest.raises(NotFound):
        addresses.check(*parts(url))


def test_an_address_that_was_changed_in_anything_does_not_serve() -> None:
    addresses = Addresses("s" * 20, "", 60, Clock())
    name, expires, signature = parts(addresses.signed_url(NAME))
    forged = [
        (name.replace("-0.png", "-1.png"), expires, signature),
        (name, str(int(expires) + 1), signature),
        (name, "9" * 30, signature),
        (name, "-1", signature),
        (name, "", signature),
        (name, "١٢٣", signature),
        (name, expires, ""),
        (name, expires, signature[:-1] + ("0" if signature[-1] != "0" else "1")),
        (name, expires, signature.upper()),
        (name, expires, "é" * 64),
        (f"{name}\n{expires}", expires, signature),
        (name, expires, parts(Addresses("t" * 20, "", 60, Clock()).signed_url(NAME))[2]),
    ]
    for each in forged:
        with pytest.raises(NotFound):
            addresses.check(*each)


@pytest.fixture(scope="module")
def made(taking_system: System) -> tuple[str, bytes]:
    """Answer the name and bytes of an output."""
    body = {"model": "voice", "input": {"input": "Every fare is counted once."}}
    with taking_system.client() as client:
        told = client.post("/v1/requests", json=body, headers={"prefer": "wait=60"}).json()
    (path,) = (taking_system.data / "blobs").glob(f"[0-9]*/*/*/{told['id']}-1*")
    return path.relative_to(taking_system.data / "blobs").as_posix(), path.read_bytes()


@pytest.fixture
def address(taking_system: System, made: tuple[str, bytes]) -> str:
    """Answer a signed address of the output, as a gateway gives it."""
    return Addresses(taking_system.admin_key, taking_system.base_url, 600).signed_url(made[0])


@pytest.fixture
def anyone() -> Iterator[httpx.Client]:
    """Answer a client without a key."""
    with httpx.Client(timeout=60) as client:
        yield client


def test_whoever_has_the_address_reads_the_file_and_a_browser_only_plays_it(
    anyone: httpx.Client, address: str, made: tuple[str, bytes]
) -> None:
    answer = anyone.get(address)
    assert (answer.status_code, answer.content) == (200, made[1])
    assert answer.headers["content-length"] == str(len(made[1]))
    assert answer.headers["content-type"] == "audio/wav"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-disposition"].startswith("inline; filename=")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    head = anyone.head(address)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == answer.headers["content-length"]
    again = anyone.get(address, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("wanted", "start", "end"),
    [("bytes=0-3", 0, 4), ("bytes=4-", 4, None), ("bytes=-5", -5, None), ("bytes=100-99999999", 100, None)],
)
def test_a_range_is_served_as_a_part(
    anyone: httpx.Client, address: str, made: tuple[str, bytes], wanted: str, start: int, end: int | None
) -> None:
    answer = anyone.get(address, headers={"range": wanted})
    part = made[1][start:end]
    first = start if start >= 0 else len(made[1]) + start
    assert (answer.status_code, answer.content) == (206, part)
    assert answer.headers["content-range"] == f"bytes {first}-{first + len(part) - 1}/{len(made[1])}"


def test_ranges_that_do_not_exist_or_are_none(anyone: httpx.Client, address: str, made: tuple[str, bytes]) -> None:
    size = len(made[1])
    for wanted in (f"bytes={size}-", "bytes=-0"):
        answer = anyone.get(address, headers={"range": wanted})
        assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{size}")
    for wanted in ("bytes=5-2", "bytes=-", "bytes=0-1,4-5", "lines=1-2", "bytes=x-y"):
        answer = anyone.get(address, headers={"range": wanted})
        assert (answer.status_code, len(answer.content)) == (200, size), wanted


def test_a_part_of_another_version_is_the_whole_file(
    anyone: httpx.Client, address: str, made: tuple[str, bytes]
) -> None:
    etag = anyone.head(address).headers["etag"]
    assert anyone.get(address, headers={"range": "bytes=0-1", "if-range": etag}).status_code == 206
    assert anyone.get(address, headers={"range": "bytes=0-1", "if-range": '"other"'}).content == made[1]


def test_forged_addresses_and_names_of_other_places_are_not_there(
    taking_system: System, anyone: httpx.Client, address: str
) -> None:
    signer = Addresses(taking_system.admin_key, taking_system.base_url, 600)
    forged = [
        address.replace("expires=", "expires=9"),
        address.partition("?")[0],
        address.replace("-1.", "-2."),
        f"{taking_system.base_url}/v1/blobs/../../connection.json",
        f"{taking_system.base_url}/v1/blobs/%2e%2e/connection.json",
    ]
    signed_but_none = [
        signer.signed_url("../connection.json"),
        signer.signed_url("/etc/passwd"),
        signer.signed_url("a//b"),
    ]
    for url in forged + signed_but_none:
        assert anyone.get(url).status_code == 404, url


def test_the_owner_reads_each_output_of_a_request_by_its_number(taking_system: System) -> None:
    body = {"model": "picture", "input": {"prompt": "x", "n": 2, "image": data_url(picture())}}
    with taking_system.client() as client:
        told = client.post("/v1/requests", json=body, headers={"prefer": "wait=60"}).json()
        path = f"/v1/requests/{told['id']}/output"
        answers = [client.get(path), client.get(path, params={"index": 0}), client.get(path, params={"index": 1})]
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        assert answers[0].content == answers[1].content
        assert answers[0].content[:4] == answers[2].content[:4] == b"\x89PNG"
        assert client.get(path, headers={"range": "bytes=1-3"}).content == b"PNG"
        assert client.get(path, params={"index": 2}).status_code == 404
        assert client.get(path, params={"index": -1}).status_code == 400
    _, other = taking_system.account(f"curious {told['id']}", "1")
    with taking_system.client(other) as stranger:
        assert stranger.get(path).status_code == 404
