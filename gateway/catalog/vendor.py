"""Fields of one model alone, which its parameters declare beside those of its tasks: what `TaskInput.extra` carries.

Callers write them flat, beside the fields of the task. They are held against their declarations before a worker sees
them; what is not declared is refused by name, in the words for any unknown field.
"""

import ipaddress
import math
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gateway.catalog.parameters import Check, Parameter, ParameterType, field_check, missing
from gateway.errors import InvalidRequest, misfit

MOST_BYTES = 256 * 1024
"""Of all fields of one call together, as the queue carries them: files are named by their address."""
MOST_URL = 4096

_TYPES: dict[ParameterType, Any] = {
    "integer": int,
    "number": int | float,
    "string": str,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SIZE = msgspec.msgpack.Encoder()


class VendorField(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with one field of one model: hold it against its declaration, or put in its default."""

    type: ParameterType
    default: Any = None
    required: bool = False
    url: bool = False
    check: Check | None = None


VendorFields = Mapping[str, VendorField]


def compile_vendor(parameters: Mapping[str, Parameter]) -> VendorFields:
    """Prepare the checks of a model's own fields, once for a model. Raises ValueError where a default does not fit."""
    return {
        name: VendorField(
            type=parameter.type,
            default=None if parameter.default is None else of_type(parameter.type, parameter.default),
            required=parameter.required,
            url=parameter.url,
            check=field_check(name, parameter),
        )
        for name, parameter in parameters.items()
    }


def of_type(kind: ParameterType, value: Any) -> Any:
    """Give a value in the type of its field; a form's text becomes a number or a truth. Raises ValueError."""
    found = msgspec.convert(value, _TYPES[kind], strict=not (isinstance(value, str) and kind in _WORDED))
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError("Expected a finite number")
    return found


def is_of_type(kind: ParameterType, value: Any) -> bool:
    """Say whether a value is of a type as it stands."""
    try:
        msgspec.convert(value, _TYPES[kind])
    except ValueError:
        return False
    return True


_WORDED: tuple[ParameterType, ...] = ("integer", "number", "boolean")


def check_extra(declared: VendorFields, given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Give a model's own fields with its defaults; None where there are none. Raises InvalidRequest by name."""
    found: dict[str, Any] = {}
    for name, value in (given or {}).items():
        field = declared.get(name)
        if field is None:
            raise misfit(f"Object contains unknown field `{name[:64]}`")
        if value is not None:
            found[name] = _checked(name, field, value)
    for name, field in declared.items():
        if name not in found:
            if field.default is not None:
                found[name] = field.default
            elif field.required:
                raise missing(name)
    if given and len(_SIZE.encode(found)) > MOST_BYTES:
        names = ", ".join(sorted(given))[:200]
        raise InvalidRequest(f"{names} together are too large: at most {MOST_BYTES} bytes.", param="input")
    return found or None


def _checked(name: str, field: VendorField, value: Any) -> Any:
    try:
        value = of_type(field.type, value)
    except ValueError as error:
        raise misfit(f"{error} - at `$.{name}`") from None
    if field.url:
        for each in value if isinstance(value, list) else [value]:
            if not is_url(each):
                raise InvalidRequest(f"{name} must be an https address that anybody can read.", param=name)
    if field.check is not None:
        field.check(value)
    return value


def is_url(value: Any) -> bool:
    """Say whether a value is an address that an upstream may be told to read."""
    if not isinstance(value, str) or len(value) > MOST_URL or not value.isprintable() or " " in value:
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme == "https" and parts.username is None and _is_public(parts.hostname or "")


def _is_public(host: str) -> bool:
    """Say whether a host may be one that anybody can reach; names are not looked up."""
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith((".local", ".internal", ".localhost"))


def split(raw: msgspec.Raw, names: Iterable[str]) -> tuple[msgspec.Raw, dict[str, Any]]:
    """Take the fields of the given names out of a JSON object; what is none stays as it is."""
    try:
        fields = _OBJECT.decode(raw)
        taken = {name: msgspec.json.decode(fields.pop(name)) for name in names if name in fields}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return raw, {}
    return (msgspec.Raw(msgspec.json.encode(fields)), taken) if taken else (raw, {})
