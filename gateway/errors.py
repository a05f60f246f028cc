"""The errors a caller can meet, as one tree. Each API family has one renderer for all of them.

FaregateError
├── InvalidRequest        400  the call itself is wrong; `param` names the field
├── Unauthorized          401  no key, or none that is known and live: always the same words
├── PaymentRequired       402  balance, budget or price ceiling do not allow it
├── Forbidden             403  the key is known and may not do this
├── NotFound              404  no such thing, or not the caller's
├── Conflict              409  the same idempotency key is in flight
├── TooLarge              413  the body is over its limit
├── Unprocessable         422  the same idempotency key came with another body
├── TooManyRequests       429  limits or backlog; `retry_after_s` says when
├── EngineFailed          502  the engine could not finish the request
├── Unavailable           503  a part of Faregate is away; nothing was charged
└── DeadlineExceeded      504  the deadline passed before the answer
"""

from typing import Any, ClassVar


class FaregateError(Exception):
    """An error with an HTTP status, a stable code, and a message that says what to do."""

    status: ClassVar[int] = 500
    default_code: ClassVar[str] = "internal_error"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.param = param
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.standing: tuple[Any, ...] = ()
        """How the caller's limits stood (`ledger.standing.Limit`), where one of them is the reason."""
        self.details: dict[str, Any] = {}
        """What programs may read of it beside the message; operators' errors only."""
        self.hangs_up = False
        """Whether the connection is closed with it: more of the call may be on its way, and nobody will read it."""


class InvalidRequest(FaregateError):
    """The call itself is wrong. Repeating it unchanged cannot succeed."""

    status = 400
    default_code = "invalid_request"


class Unauthorized(FaregateError):
    """No key, or none that is known and live."""

    status = 401
    default_code = "invalid_api_key"


class PaymentRequired(FaregateError):
    """Balance, budget or the caller's own ceiling do not allow the quoted price."""

    status = 402
    default_code = "insufficient_balance"


class Forbidden(FaregateError):
    """The key is known and may not do this."""

    status = 403
    default_code = "forbidden"


class NotFound(FaregateError):
    """No such thing, or not the caller's: the two look alike."""

    status = 404
    default_code = "not_found"


class Conflict(FaregateError):
    """The same idempotency key is in flight, or another writer came first."""

    status = 409
    default_code = "conflict"
    retryable = True


class TooLarge(FaregateError):
    """The body is over its limit."""

    status = 413
    default_code = "body_too_large"


class Unprocessable(FaregateError):
    """Well-formed, and in contradiction to what is already there."""

    status = 422
    default_code = "unprocessable"


class TooManyRequests(FaregateError):
    """A limit is reached or a queue is full."""

    status = 429
    default_code = "rate_limited"
    retryable = True


class EngineFailed(FaregateError):
    """The engine could not finish the request."""

    status = 502
    default_code = "engine_error"
    retryable = True


class Unavailable(FaregateError):
    """A part of Faregate is away for the moment; nothing was charged."""

    status = 503
    default_code = "unavailable"
    retryable = True


class DeadlineExceeded(FaregateError):
    """The deadline passed before there was an answer."""

    status = 504
    default_code = "deadline_exceeded"
    retryable = True


def misfit(words: str, under: str = "") -> InvalidRequest:
    """Make an InvalidRequest of what msgspec says of a value that does not fit, naming the field, below `under`."""
    message, _, path = words.partition(" - at `$")
    path, code = path.rstrip("`").lstrip("."), None
    for said in ("unknown field `", "missing required field `"):
        if said in message:
            name = message.split(said, 1)[1].rstrip("`")
            path = f"{path}.{name}" if path else name
            code = "unknown_field" if said.startswith("unknown") else None
    param = f"{under}.{path}" if under and path else under or path
    return InvalidRequest(message, code=code, param=param or None)
