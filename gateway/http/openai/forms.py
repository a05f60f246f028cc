"""From the fields of a form to a body: `n=2` is a number, `image[]` a list, `metadata[order]` an entry."""

from typing import Any, TypeVar

import msgspec

from gateway.contract.inputs import Media
from gateway.errors import InvalidRequest
from gateway.http.errors import from_decoding
from gateway.http.multipart import Form
from gateway.http.openai.extra import is_open, opened

T = TypeVar("T")


def body_of(form: Form[Media], kind: type[T], files: dict[str, str]) -> T:
    """Read a form as a body; `files` says under which name the file of a part comes to stand.

    Raises InvalidRequest that names the field.
    """
    plain: dict[str, Any] = {}
    for name, text in form.fields:
        _put(plain, name, text)
    for name, media in form.files:
        _put(plain, files.get(name, name), media)
    try:
        return _read(plain, kind)
    except InvalidRequest as error:
        if not is_open(error, kind):
            raise
    return _read(opened(plain, kind, lambda value: value), kind)


def _read(plain: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(plain, kind, strict=False)
    except msgspec.ValidationError as error:
        raise from_decoding(error) from None


def _put(plain: dict[str, Any], name: str, value: str | Media) -> None:
    """Put one part in its place: a name that ends in `[]`, or comes again, stands for a list."""
    stem, bracket, key = name.partition("[")
    key = key.removesuffix("]")
    if bracket and key:
        entries = plain.setdefault(stem, {})
        if not isinstance(entries, dict):
            raise InvalidRequest("A field comes both plain and with entries.", code="invalid_form", param=stem[:64])
        entries[key] = value
    elif bracket or stem in plain:
        before = plain.get(stem, [])
        plain[stem] = [*(before if isinstance(before, list) else [before]), value]
    else:
        plain[stem] = value
