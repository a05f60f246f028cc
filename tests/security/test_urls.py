"""Addresses that callers name: what may be reached, and what may not, whichever way it is written."""

import asyncio
import ipaddress
import socket
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from gateway.media.fetch import Fetcher, UrlNotFetched
from gateway.net.addresses import Allowed, UrlNotAllowed, is_public, resolve_public
from tests.media.samples import data_url, picture
from tests.media.serving import IMAGE_BYTES, SETTINGS
from tests.media.websites import ALLOWED, gives, leads_to, website
from tests.second_gateway import second_gateway
from tests.system import System

REFUSED = [
    "http://127.0.0.1/a.png",
    "http://127.1/a.png",
    "http://2130706433/a.png",
    "http://0x7f000001/a.png",
    "http://0x7f.0.0.1/a.png",
    "http://017700000001/a.png",
    "http://0177.0.0.1/a.png",
    "http://127。0。0。1/a.png",
    "http://localhost/a.png",
    "http://LOCALHOST./a.png",
    "http://0/a.png",
    "http://0.0.0.0/a.png",
    "http://[::1]/a.png",
    "http://[::]/a.png",
    "http://[::ffff:127.0.0.1]/a.png",
    "http://[::ffff:7f00:1]/a.png",
    "http://[::127.0.0.1]/a.png",
    "http://[64:ff9b::7f00:1]/a.png",
    "http://[2002:7f00:1::]/a.png",
    "http://[fe80::1]/a.png",
    "http://[fe80::1%25lo]/a.png",
    "http://[fd00::1]/a.png",
    "http://[fec0::1]/a.png",
    "http://[ff02::1]/a.png",
    "http://10.0.0.1/a.png",
    "http://172.16.0.1/a.png",
    "http://192.168.1.1/a.png",
    "http://100.64.0.1/a.png",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://198.18.0.1/a.png",
    "http://224.0.0.1/a.png",
    "http://255.255.255.255/a.png",
    "http://user:password@example.com/a.png",
    "http://nothing.invalid/a.png",
    "http:///a.png",
    "http://",
    "http://exa\nmple.com/",
    "http://" + "a" * 300 + "/",
    "http://x.example/" + "a" * 9000,
]


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_is_not_public_is_refused_in_the_same_words(taking_system: System, url: str) -> None:
    body = {"model": "picture", "input": {"prompt": "x", "image": url}}
    with taking_system.client() as client:
        answer = client.post("/v1/requests", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == {
        "code": "url_not_allowed",
        "message": "This URL is not allowed: it must be http or https, at a public address.",
        "param": "image",
        "request_id": None,
    }


@pytest.mark.parametrize(
    "url", ["ftp://example.com/a", "gopher://x", "file:///etc/passwd", "//127.0.0.1/a", "jar:http://x!/"]
)
def test_other_schemes_are_no_addresses(taking_system: System, url: str) -> None:
    with taking_system.client() as client:
        answer = client.post("/v1/requests", json={"model": "picture", "input": {"prompt": "x", "image": url}})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "image")


def ask(system: System, url: str) -> tuple[int, str]:
    """Name an address in a call; answers status and code."""
    body = {"model": "picture", "input": {"prompt": "x", "image": url}}
    with system.client() as client:
        answer = client.post("/v1/requests", json=body, headers={"prefer": "wait=60"})
    return answer.status_code, answer.json().get("error", {}).get("code", "")


def test_each_hop_of_a_redirect_is_judged_and_there_are_three_at_most(taking_system: System) -> None:
    with website({"/secret.png": gives(picture())}, host="127.0.0.1") as inside:
        hidden = inside.url("/secret.png", host="127.0.0.1")
        pages = {
            "/in": leads_to(hidden),
            "/in-later": leads_to("/in", 307),
            "/scheme": leads_to("file:///etc/passwd"),
            "/user": leads_to("http://a:b@example.com/"),
            "/loop": leads_to("/loop"),
            "/1": leads_to("/2"),
            "/2": leads_to("/3", 303),
            "/3": leads_to("/4", 308),
            "/4": gives(picture()),
            "/0": leads_to("/1"),
            "/nowhere": leads_to(""),
        }
        with website(pages) as outside:
            refused = (400, "url_not_allowed")
            for path in ("/in", "/in-later", "/scheme", "/user", "/loop", "/0"):
                assert ask(taking_system, outside.url(path)) == refused, path
            assert ask(taking_system, outside.url("/1"))[0] == 200
            assert ask(taking_system, outside.url("/nowhere")) == (400, "url_not_fetched")
            assert ask(taking_system, outside.url("/404")) == (400, "url_not_fetched")
        assert inside.seen == [], "nothing of the inside was asked"


def test_a_file_is_refused_when_it_is_too_large_whatever_it_says(taking_system: System) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "image/png")
        handler.end_headers()
        try:
            for _ in range(1000):
                handler.wfile.write(b"\0" * 100_000)
        except OSError:
            return  # it was hung up on, as it should be

    pages = {"/large": gives(bytes(IMAGE_BYTES + 1)), "/endless": endless,
             "/gzip": gives(picture(), content_encoding="gzip")}  # fmt: skip
    with website(pages) as site:
        assert ask(taking_system, site.url("/large")) == (413, "media_too_large")
        assert ask(taking_system, site.url("/endless")) == (413, "media_too_large")
        assert ask(taking_system, site.url("/gzip"))[0] == 200, "what is not unpacked cannot be a bomb"
    assert ask(taking_system, data_url(bytes(IMAGE_BYTES + 1))) == (413, "media_too_large")


def test_a_file_that_trickles_in_without_an_end_is_given_up(taking_system: System, tmp_path: Path) -> None:
    """By a gateway that waits for a second; the others have more, for machines that stand still for a moment."""

    def slow(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"\0")
                handler.wfile.flush()
                time.sleep(0.1)
        except OSError:
            return  # it was hung up on, as it should be

    environ = SETTINGS | {"FAREGATE_FETCH_S": "1"}
    with website({"/slow": slow}) as site, second_gateway(taking_system, tmp_path / "gateway.log", environ) as gateway:
        assert ask(gateway, site.url("/slow")) == (400, "url_not_fetched")


class Resolver:
    """Answers one address after another for the same name, as who rebinds does."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        self.asked += 1
        address = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in address.split(",")]


async def test_a_name_is_resolved_once_and_the_connection_goes_where_it_was_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second answer, a private address, is never asked for."""
    resolver = Resolver(ALLOWED, "127.0.0.1")
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver, raising=False)
    fetcher = Fetcher(Allowed.parse(f"{ALLOWED}/32"), 60.0)
    with website({"/a.png": gives(picture())}) as site:
        data = b"".join([piece async for piece in fetcher.pieces(site.url("/a.png", "rebind.example"), "image")])
        assert data == picture()
        assert resolver.asked == 1
        assert site.seen == [("/a.png", f"rebind.example:{site.port}", "")]
        with pytest.raises(UrlNotAllowed):
            async for _ in fetcher.pieces(site.url("/a.png", "rebind.example"), "image"):
                pass
        assert len(site.seen) == 1
    await fetcher.close()


async def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", Resolver("93.184.216.34,10.0.0.1"), raising=False)
    with pytest.raises(UrlNotAllowed):
        await resolve_public("mixed.example", 80, Allowed())


async def test_what_the_operator_allows_is_reached_and_its_neighbours_are_not() -> None:
    allowed = Allowed.parse("10.1.0.0/16, Media.Internal ,fd00::/8,127.0.0.9")
    assert await resolve_public("10.1.2.3", 80, allowed) == "10.1.2.3"
    assert await resolve_public("127.0.0.9", 80, allowed) == "127.0.0.9"
    assert await resolve_public("fd00::5", 80, allowed) == "fd00::5"
    assert allowed.hosts == {"media.internal"}
    for host in ("10.2.0.1", "127.0.0.1", "fe80::1"):
        with pytest.raises(UrlNotAllowed):
            await resolve_public(host, 80, allowed)
    with pytest.raises(ValueError, match=r"network|address"):
        Allowed.parse("10.0.0.0/99")


def test_what_is_public() -> None:
    for text in ("8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8"):
        assert is_public(ipaddress.ip_address(text)), text


async def test_a_site_that_does_not_answer_is_told_without_its_address() -> None:
    fetcher = Fetcher(Allowed.parse(f"{ALLOWED}/32"), 60.0)
    with pytest.raises(UrlNotFetched) as told:
        async for _ in fetcher.pieces(f"http://{ALLOWED}:9/a.png", "image"):
            pass
    assert ALLOWED not in str(told.value)
    assert told.value.param == "image"
    await fetcher.close()
