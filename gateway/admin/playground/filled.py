"""From a filled form to the input of a call, exactly as a caller would send it."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from litestar.datastructures import UploadFile

from gateway.admin.playground.fields import Field
from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest, TooLarge

MOST_FILE_BYTES = 16 * 1024 * 1024
MOST_FILES = 8
Uploads = Mapping[str, Sequence[UploadFile]]


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """What a form says."""

    input: dict[str, Any]
    shown: dict[str, Any]
    """The same for reading: files by their names."""


async def filled(fields: Sequence[Field], task: Task, form: Mapping[str, str], uploads: Uploads) -> Filled:
    """Read a form. Empty fields are left out. Raises InvalidRequest naming the field, and TooLarge."""
    given: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for field in fields:
        if field.kind in ("file", "files"):
            sources = [await _data_url(field, upload) for upload in uploads.get(field.name, ())[:MOST_FILES]]
            names = [f"data:{upload.content_type};base64,..." for upload in uploads.get(field.name, ())]
            address = form.get(f"{field.name}_url", "")
            if address:
                sources, names = [*sources, address], [*names, address]
            if sources:
                given[field.name] = sources if field.kind == "files" else sources[0]
                shown[field.name] = names if field.kind == "files" else names[0]
            continue
        text = form.get(field.name, "")
        if field.kind == "check" or text:
            given[field.name] = shown[field.name] = _value(field, text)
    if task == "chat":
        return Filled(input=_chat(given), shown=_chat(shown))
    return Filled(input=given, shown=shown)


def raw(given: Mapping[str, Any]) -> msgspec.Raw:
    """Write an input as its JSON."""
    return msgspec.Raw(msgspec.json.encode(given))


def _chat(given: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in given.items() if name not in ("message", "system")}
    messages = [{"role": "system", "content": given["system"]}] if given.get("system") else []
    if given.get("message"):
        messages.append({"role": "user", "content": given["message"]})
    return {"messages": messages, **rest}


def _value(field: Field, text: str) -> Any:
    try:
        if field.kind == "check":
            return bool(text)
        if field.kind == "integer":
            return int(text)
        if field.kind == "number":
            number = float(text)
            return int(number) if number.is_integer() else number
        if field.kind == "json":
            return msgspec.json.decode(text)
        if field.kind == "choice":
            return next((_plain(choice) for choice in field.choices if choice == text), text)
    except (ValueError, OverflowError):
        what = {"integer": "a whole number", "number": "a number"}.get(field.kind, "JSON")
        raise InvalidRequest(f"{field.label} is {what}.", param=field.name) from None
    if field.kind == "lines":
        return [line for line in text.splitlines() if line.strip()]
    return text


def _plain(choice: str) -> Any:
    """Give a choice as the value that it stands for: numbers were written as JSON."""
    try:
        value = json.loads(choice)
    except ValueError:
        return choice
    return value if isinstance(value, int | float) and not isinstance(value, bool) else choice


async def _data_url(field: Field, upload: UploadFile) -> str:
    data = await upload.read()
    if len(data) > MOST_FILE_BYTES:
        raise TooLarge(f"{field.label}: at most {MOST_FILE_BYTES // 2**20} MiB here.", param=field.name)
    kind = upload.content_type or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
