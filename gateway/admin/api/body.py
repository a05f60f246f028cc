"""Reading JSON bodies strictly: a number is a number, and whatever is wrong with a body is the caller's error."""

import re
from typing import Any

import msgspec
from litestar import Request
from litestar.datastructures import State

from gateway.errors import InvalidRequest
from gateway.twins import refuse_twins

_PLACE = re.compile(r" - at `\$\.?(.*)`$")
_FIELD = re.compile(r"field `([^`]*)`")


class JsonRequest(Request[Any, Any, State]):
    """A request whose JSON is decoded as its handler's type: Litestar itself would take "1e3" for a number."""

    async def json(self) -> Any:
        """Decode the body. Raises InvalidRequest naming the field."""
        kind = self.route_handler.parsed_fn_signature.parameters["data"].annotation
        try:
            decoded = msgspec.json.decode(await self.body(), type=kind)
            refuse_twins(await self.body())
            return decoded
        except msgspec.ValidationError as error:
            raise _refusal(str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"The body is not valid JSON: {error}", code="invalid_json") from None
        except RecursionError:
            raise InvalidRequest("The body is nested too deeply.", code="invalid_json") from None


def _refusal(said: str) -> InvalidRequest:
    place, field = _PLACE.search(said), _FIELD.search(said)
    param = field[1] if field else place[1] if place else None
    code = "unknown_field" if "unknown field" in said else None
    return InvalidRequest(_PLACE.sub("", said) + ".", code=code, param=param)
