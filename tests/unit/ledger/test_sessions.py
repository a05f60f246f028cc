"""A token stands for the key that it names, for its time and its use, and nobody else can make one."""

import base64
import json

import jwt
import pytest

from gateway.ledger.sessions import LASTS_S, Sessions, Use


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("use", LASTS_S)
def test_a_token_serves_for_its_time_and_its_use_alone(use: Use) -> None:
    clock = Clock()
    sessions = Sessions("admin", clock)
    token = sessions.token(7, use)
    assert {each: sessions.key_of(token, each) for each in LASTS_S} == {
        each: 7 if each == use else None for each in LASTS_S
    }
    clock.now_s += LASTS_S[use] - 1
    assert sessions.key_of(token, use) == 7
    clock.now_s += 1
    assert sessions.key_of(token, use) is None


def test_a_library_of_the_standard_reads_it_and_finds_no_secret() -> None:
    token = Sessions("admin").token(7, "access")
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["userId"], claims["key"]) == ("7", 7)
    assert jwt.get_unverified_header(token)["alg"] == "HS256"


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "ey.ey.ey", "x" * 5000, "\ud800.\xff.", "é.é.é"])
def test_what_is_no_token_stands_for_nothing(token: str) -> None:
    assert Sessions("admin").key_of(token, "access") is None


def test_a_changed_token_and_one_of_another_system_stand_for_nothing() -> None:
    sessions = Sessions("admin")
    head, claims, signature = sessions.token(7, "access").split(".")
    other = encoded({"key": 8, "userId": "8", "use": "access", "iat": 0, "exp": 2**40})
    unsigned = encoded({"alg": "none", "typ": "JWT"})
    for forged in (
        f"{head}.{other}.{signature}",
        f"{unsigned}.{other}.",
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature}A",
    ):
        assert sessions.key_of(forged, "access") is None
    assert Sessions("another").key_of(f"{head}.{claims}.{signature}", "access") is None
