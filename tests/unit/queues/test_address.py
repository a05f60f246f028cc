import pytest

from gateway.queues.address import Address, parse_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://", Address()),
        ("redis://10.0.0.1:6380/3", Address(host="10.0.0.1", port=6380, database=3)),
        ("redis://:p%40ss@h/1", Address(host="h", password="p@ss", database=1)),
        ("rediss://user:pw@h:1", Address(host="h", port=1, username="user", password="pw", tls=True)),
        ("redis://h?db=2", Address(host="h", database=2)),
        ("unix:///run/valkey.sock?db=4", Address(path="/run/valkey.sock", database=4)),
        ("unix://:pw@/run/valkey.sock", Address(path="/run/valkey.sock", password="pw")),
        ("unix:///run/valkey.sock?password=pw", Address(path="/run/valkey.sock", password="pw")),
    ],
)
def test_a_url_names_server_login_and_database(url: str, address: Address) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize("url", ["", "http://h", "localhost:6379", "redis://h/first", "redis://h:port"])
def test_what_is_no_redis_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_address(url)


def test_an_address_is_shown_without_its_password() -> None:
    assert str(parse_address("redis://:secret@h:1/0")) == "h:1"
