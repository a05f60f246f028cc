"""The files of an input, each given as an upstream wants it: an uploaded address, a data URI, or plain Base64."""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from gateway.contract.inputs import MEDIA_FIELDS, MediaSource
from workers.engines.upstream.protocol import Call

Give = Callable[[Call, MediaSource], Awaitable[str]]


async def attached(call: Call, give: Give) -> dict[str, Any]:
    """Give the files of an input by field, lists as lists, each as `give` makes it."""
    given = call.run.input
    sent: dict[str, Any] = {}
    for name in MEDIA_FIELDS.get(type(given), ()):
        value = getattr(given, name)
        if isinstance(value, list):
            sent[name] = [await give(call, each) for each in value]
        elif value is not None:
            sent[name] = await give(call, value)
    return sent


async def as_data_uri(call: Call, source: MediaSource) -> str:
    """Give a file as a data URI."""
    return await call.parcels.data_uri(source)


async def as_base64(call: Call, source: MediaSource) -> str:
    """Give a file as Base64 without anything before it."""
    return base64.b64encode(await call.parcels.content(source)).decode("ascii")
