"""Fields that no OpenAI body has, such as those of `extra_body`: a model may declare them, so `resolve` judges them.

A body is read as its own type first. Only where that finds a field it does not know is it read a second time, and what
is unknown goes where the fields of one model alone go; calls without such fields pay nothing for it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from gateway.errors import InvalidRequest
from gateway.http.raw import decode

T = TypeVar("T")

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder()


def decode_open(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """Decode a body, with what its type does not know in `extra`. Raises InvalidRequest."""
    try:
        return decode(decoder, body)
    except InvalidRequest as error:
        if not is_open(error, decoder.type):
            raise
    fields = opened(decode(_OBJECT, body), decoder.type, lambda raw: decode(_ANY, bytes(raw)))
    return decode(decoder, msgspec.json.encode(fields))


def is_open(error: InvalidRequest, kind: Any) -> bool:
    """Say whether a body was refused for a field of its own that a model may declare."""
    return (
        error.code == "unknown_field" and not set(error.param or "") & set(".[") and "extra" in kind.__struct_fields__
    )


def opened(fields: dict[str, Any], kind: Any, read: Callable[[Any], Any]) -> dict[str, Any]:
    """Give the fields of a body with those that its type does not know moved into `extra`, as `read` reads them."""
    known = kind.__struct_encode_fields__
    extra = (read(fields["extra"]) if "extra" in fields else None) or {}
    loose = {name: read(value) for name, value in fields.items() if name not in known}
    kept = {name: value for name, value in fields.items() if name in known}
    return kept | {"extra": extra | loose if isinstance(extra, dict) else extra}
