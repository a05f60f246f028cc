"""The address of a caller is what trusted proxies say, and nothing that a caller can write."""

import pytest

from gateway.admin.site.throttle import home_of
from gateway.flow.origin import Origin, origin
from gateway.ledger.permits import ALL, permits_of
from gateway.net.addresses import networks_of

PROXIES = networks_of("10.0.0.0/8, ::1, 192.0.2.7", "trusted_proxies")


def address(peer: str, *forwarded: str) -> str:
    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    return Origin(peer, headers, PROXIES).address()


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("203.0.113.9", (), "203.0.113.9"),
        ("203.0.113.9", ("198.51.100.1",), "203.0.113.9"),  # nobody trusts who says so
        ("10.1.2.3", ("198.51.100.1",), "198.51.100.1"),
        ("10.1.2.3", ("6.6.6.6, 198.51.100.1",), "198.51.100.1"),  # the caller wrote the first
        ("10.1.2.3", ("6.6.6.6", "198.51.100.1, 10.9.9.9"), "198.51.100.1"),
        ("10.1.2.3", ("198.51.100.1, garbage",), "garbage"),  # no address: in no network
        ("10.1.2.3", ("",), ""),
        ("10.1.2.3", (), "10.1.2.3"),
        ("10.1.2.3", ("198.51.100.1:4711",), "198.51.100.1"),  # of every connection another port
        ("10.1.2.3", ("198.51.100.1, 10.7.7.7:80",), "198.51.100.1"),
        ("10.1.2.3", ("[2001:db8::5]:443",), "2001:db8::5"),
        ("10.1.2.3", ("[2001:db8::5",), "2001:db8::5"),
        ("10.1.2.3", ("10.4.4.4, ::ffff:198.51.100.1",), "::ffff:198.51.100.1"),
        ("10.1.2.3", ("6.6.6.6,,198.51.100.1, ::ffff:10.5.5.5",), "198.51.100.1"),
        ("10.1.2.3", ("for=6.6.6.6", "unknown"), "unknown"),
        ("10.1.2.3.", ("198.51.100.1",), "10.1.2.3."),  # a peer that is no address is no proxy
        ("10.1.2.3", ("10.4.4.4, 10.5.5.5",), "10.4.4.4"),
        ("::ffff:10.1.2.3", ("198.51.100.1",), "198.51.100.1"),
        ("::1", ("2001:db8::5",), "2001:db8::5"),
        ("", ("198.51.100.1",), ""),
    ],
)
def test_only_what_trusted_proxies_wrote_is_believed(peer: str, forwarded: tuple[str, ...], expected: str) -> None:
    assert address(peer, *forwarded) == expected


@pytest.mark.parametrize(
    ("peer", "said", "is_tls"),
    [
        ("10.1.2.3", ("https",), True),
        ("10.1.2.3", (" HTTPS ",), True),
        ("10.1.2.3", ("http",), False),
        ("10.1.2.3", ("https", "http"), False),  # the caller wrote the first
        ("10.1.2.3", ("https, http",), False),
        ("10.1.2.3", (), False),
        ("203.0.113.9", ("https",), False),
        ("", ("https",), False),
    ],
)
def test_tls_is_what_the_nearest_trusted_proxy_says(peer: str, said: tuple[str, ...], is_tls: bool) -> None:
    headers = [(b"x-forwarded-proto", each.encode()) for each in said]
    assert Origin(peer, headers, PROXIES).is_tls is is_tls


@pytest.mark.parametrize(
    ("address_", "home"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("", ""),
        ("unknown", ""),
        ("x" * 60_000, ""),
    ],
)
def test_tries_are_counted_by_home_and_what_is_no_address_is_all_one(address_: str, home: str) -> None:
    assert home_of(address_) == home


def test_without_an_origin_there_is_no_address() -> None:
    assert origin().address() == ""


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ("203.0.113.9", True),
        ("::ffff:203.0.113.9", True),
        ("203.0.114.9", False),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
        ("garbage", False),
        ("203.0.113.9:80", False),
        ("", False),
    ],
)
def test_a_key_is_bound_to_its_networks(given: str, allowed: bool) -> None:
    permits = permits_of(None, ["203.0.113.0/24", "2001:db8::/32"])
    assert permits.allow_address(given) is allowed
    assert ALL.allow_address(given)


def test_models_are_names_and_patterns() -> None:
    permits = permits_of(["gpt-5", "team/*", "a.b"], None)
    assert permits.allow_model(["gpt-5"])
    assert permits.allow_model(["other", "team/x/y"])  # by an alias
    assert not permits.allow_model(["gpt-5-mini", "axb", "TEAM/x", "xteam/y"])
    assert permits_of([], None).allow_model(["gpt-5"]) is False
