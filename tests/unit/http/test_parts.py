"""Bodies with files in the middle are whole, of the length that was said, and read a piece at a time."""

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from gateway.blobs.local import LocalBlobs
from gateway.contract.events import MediaOutput
from gateway.errors import NotFound
from gateway.http.errors import Headers
from gateway.http.parts import Part, Stored, base64_part, send_parts, size_of_parts

SIZES = (0, 1, 2, 3, 4, 1_000_000, 1_000_001)


class Caller:
    """Hears an answer."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    async def __call__(self, message: Any) -> None:
        self.messages.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


@pytest.mark.parametrize("size", SIZES)
async def test_a_file_stands_in_a_body_as_base64(tmp_path: Path, size: int) -> None:
    blobs, data = LocalBlobs(tmp_path), bytes(range(256)) * (size // 256 + 1)
    await blobs.put("a/b.png", data[:size])
    parts: list[Part] = [b'{"data":"', Stored("a/b.png", size), b'","again":"', Stored("a/b.png", size), b'"}']
    caller, headers = Caller(), Headers()
    await send_parts(caller, headers, parts, blobs)
    told = json.loads(caller.body)
    assert b64decode(told["data"]) == b64decode(told["again"]) == data[:size]
    assert dict(headers)[b"content-length"] == str(len(caller.body)).encode() == str(size_of_parts(parts)).encode()
    assert max(len(message.get("body", b"")) for message in caller.messages) <= 512 * 1024
    assert caller.messages[-1]["more_body"] is False


async def test_a_file_that_is_gone_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    caller = Caller()
    with pytest.raises(NotFound):
        await send_parts(caller, [], [b"{", Stored("a/b.png", 1), b"}"], LocalBlobs(tmp_path))
    assert caller.messages == []


def test_what_came_inline_is_encoded_at_once() -> None:
    assert base64_part(MediaOutput("image/png", 3, b"abc")) == b64encode(b"abc")
    assert base64_part(MediaOutput("image/png", 3, blob="a/b.png")) == Stored("a/b.png", 3)
