"""Errors name the field, keep their status in every family, and say when to come back."""

import msgspec
import pytest

from gateway.errors import FaregateError, InvalidRequest, TooManyRequests, Unauthorized
from gateway.http.errors import error_headers, from_decoding, native_body, openai_body, told
from gateway.http.openai.bodies import ChatBody


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"model":"m","messages":[{"role":"user","content":"x"}],"api_base":"http://evil"}', "api_base"),
        (b'{"model":"m","messages":[{"role":"user","content":"x","y":1}]}', "messages[0].y"),
        (b'{"model":"m"}', "messages"),
        (b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":9}', "temperature"),
        (b'{"model":"m","messages":[{"role":"user","content":"x"}],"n":17}', "n"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_naming_its_field(body: bytes, param: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=ChatBody)
    error = from_decoding(caught.value)
    assert isinstance(error, InvalidRequest)
    assert error.param == param


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"model": NaN}', b"[" * 100_000])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, RecursionError, UnicodeDecodeError)) as caught:
        msgspec.json.decode(body, type=ChatBody)
    assert from_decoding(caught.value).status == 400


def test_a_full_queue_says_when_to_come_back_in_both_units() -> None:
    headers = dict(error_headers(TooManyRequests("full", retry_after_s=1.5)))
    assert headers[b"retry-after"] == b"2"
    assert headers[b"retry-after-ms"] == b"1500"
    assert headers[b"x-should-retry"] == b"true"


def test_both_families_tell_code_message_and_request() -> None:
    error = Unauthorized("no", request_id="req_1")
    for body in (native_body(error), openai_body(error)):
        assert body["error"]["code"] == "invalid_api_key"
        assert body["error"]["message"] == "no"
        assert body["error"]["request_id"] == "req_1"


def test_a_fault_of_our_own_is_told_without_its_words() -> None:
    error = told(RuntimeError("secret detail"), "/v1/x")
    assert isinstance(error, FaregateError)
    assert error.status == 500
    assert "secret" not in error.message
