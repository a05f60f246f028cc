"""How the limits of a caller stand, in headers.

`x-ratelimit-*` are OpenAI's, with its names and its form of durations, of the tighter of account and key. `RateLimit`
and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers) name every limit: budgets in nanos, with what is left and
the seconds until all of it is there again.
"""

from gateway.http.errors import Headers
from gateway.ledger.standing import Limit, Standing, duration_text

MOST_INTEGER = 999_999_999_999_999
"""The largest integer of a structured field (RFC 9651)."""
_WINDOWS = {"day": ";w=86400", "week": ";w=604800", "requests": ";w=60", "tokens": ";w=60"}
_UNITS = {"requests": "requests", "tokens": "tokens", "concurrent": "concurrent-requests"}


def limit_headers(standing: Standing) -> Headers:
    """Give the headers of a call whose account or key has limits."""
    headers: Headers = []
    for what in ("requests", "tokens"):
        rates = [limit for limit in standing if limit.name.endswith(f":rate:{what}")]
        if rates:
            tight = min(rates, key=lambda limit: (limit.left, limit.most))
            for name, value in (
                ("limit", str(tight.most)),
                ("remaining", str(tight.left)),
                ("reset", duration_text(tight.resets_ms or 0)),
            ):
                headers.append((f"x-ratelimit-{name}-{what}".encode(), value.encode()))
    headers.append((b"ratelimit-policy", ", ".join(map(_policy, standing)).encode()))
    headers.append((b"ratelimit", ", ".join(map(_state, standing)).encode()))
    return headers


def _policy(limit: Limit) -> str:
    which = limit.name.rsplit(":", 1)[1]
    unit = _UNITS.get(which, "nanos")
    return f'{_name(limit)};q={min(limit.most, MOST_INTEGER)};qu="{unit}"{_WINDOWS.get(which, "")}'


def _state(limit: Limit) -> str:
    resets = "" if limit.resets_ms is None else f";t={-(-limit.resets_ms // 1000)}"
    return f"{_name(limit)};r={min(limit.left, MOST_INTEGER)}{resets}"


def _name(limit: Limit) -> str:
    return '"' + limit.name.replace(":", "-") + '"'
