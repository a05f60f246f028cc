"""What goes wrong at an upstream, as the errors of an attempt: by status, by code, and in words that may be shown.

What an upstream writes may hold the operator's key, addresses or control characters; none of them leaves this file.
"""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from gateway.contract.states import Reason
from workers.engine import EngineError, RefusedInput

MOST_SHOWN_CHARS = 300
MOST_RETRY_S = 3600.0
"""The longest `Retry-After` that is believed."""

_URLS = re.compile(r"(?:https?|wss?|s3|gs)://\S+", re.IGNORECASE)
_BEARERS = re.compile(r"\b(?:bearer|key|token|basic)\s+\S{8,}", re.IGNORECASE)
_SECRETS = re.compile(r"[A-Za-z0-9_\-.*+/=]{20,}")
"""Long runs without a space are keys, tokens and identifiers, and no words."""

_BLOCKED = re.compile(
    r"content[_ -]?(?:policy|filter|moderation)|moderation[_ -]?blocked|safety[_ -](?:system|filter|violation|policy)"
    r"|responsibleai|sensitive[_ -]?(?:content|information|word)|nsfw|risk control|flagged",
    re.IGNORECASE,
)


FINAL: frozenset[Reason] = frozenset(("blocked", "upstream_unknown"))
"""Reasons after which no other route is tried: none would serve it, or it may be bought already."""
HEALTHY: frozenset[Reason] = frozenset({"blocked", "refused_by_engine", "upstream_unknown"})
"""What says nothing of an upstream's health."""


class UpstreamFailed(EngineError):
    """An attempt failed.

    `detail` is for the operator and is recorded with the attempt; the text is for the caller. `retry_after_s` is what
    the upstream asked for. `sick` says that it speaks of the health of the model there, which its breaker counts, and
    `wide` of that of the whole upstream. `sent` says that the upstream may have taken the call: a job is then not
    bought a second time. `lasting` says that the same step, tried again, can only fail again.
    """

    def __init__(
        self,
        text: str,
        *,
        reason: Reason = "upstream_error",
        detail: str = "",
        retry_after_s: float | None = None,
        wide: bool = False,
        sent: bool = False,
    ) -> None:
        super().__init__(text, reason=reason, final=reason in FINAL)
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.sick = reason not in HEALTHY
        self.wide = wide
        self.sent = sent
        self.lasting = False


def clean(text: str, most: int = MOST_SHOWN_CHARS) -> str:
    """Make words of an upstream fit to be shown: short, on one line, without anything like an address or a key."""
    if not text:
        return ""
    text = "".join(char if char.isprintable() else " " for char in text[: 8 * most])
    text = _BEARERS.sub("[removed]", _URLS.sub("[removed]", text))
    text = " ".join(_SECRETS.sub("[removed]", text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def is_blocked(words: str) -> bool:
    """Say whether an upstream's code or words mean that it will not serve this content."""
    return _BLOCKED.search(words[:4096]) is not None


def blocked(words: str = "") -> UpstreamFailed:
    """Make the error for content that an upstream will not serve: final, and no sign of sickness."""
    text = "The provider will not serve this content."
    said = clean(words)
    return UpstreamFailed(f"{text} It says: {said}" if said else text, reason="blocked")


def unreadable(detail: str) -> UpstreamFailed:
    """Make the error for an answer that is not what the protocol says."""
    return UpstreamFailed("The provider gave an answer that cannot be read.", detail=detail, sent=True)


def words_of(body: bytes) -> str:
    """Find the words and codes in an error's body: `error.message`, `detail` and the like, else its text."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body[:4096].decode("utf-8", "replace")
    return " ".join(_words(found, 0))


def _words(value: Any, depth: int) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and depth < 3:
        return [word for each in value[:8] for word in _words(each, depth + 1)]
    if isinstance(value, dict) and depth < 3:
        keys = ("code", "type", "error", "message", "msg", "detail", "reason", "title", "error_message", "status_msg")
        return [word for key in keys if key in value for word in _words(value[key], depth + 1)]
    return []


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how long an upstream asks to be left alone; None where it does not say so."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * scale
        except KeyError:
            continue
        except ValueError:
            seconds = _until(headers[name])
        if 0 <= seconds < float("inf"):
            return min(seconds, MOST_RETRY_S)
    return None


def _until(date: str) -> float:
    """Give the seconds to a date as HTTP writes it; below 0 where it is none."""
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return -1.0


def of_status(status: int, headers: Mapping[str, str], body: bytes) -> Exception:
    """Give the usual meaning of a status that is no success."""
    words = words_of(body)
    detail = f"HTTP {status}: {clean(words)}"
    if status == 429:
        return UpstreamFailed(
            "The provider takes no more calls for the moment.",
            reason="upstream_limited",
            detail=detail,
            retry_after_s=retry_after(headers),
        )
    if status == 402:
        return UpstreamFailed(
            "The provider does not serve this account now.", reason="upstream_limited", detail=detail, wide=True
        )
    if status in (401, 403) and not is_blocked(words):
        text = "The provider does not accept this system's key."
        return UpstreamFailed(text, detail=f"{detail} (is the key right?)", wide=True)
    if status == 408 or status == 504:
        return UpstreamFailed(
            "The provider took too long.", reason="upstream_timeout", detail=detail, sent=status == 504
        )
    if status >= 500:
        return UpstreamFailed(
            "The provider failed.", detail=detail, retry_after_s=retry_after(headers), sent=status == 502
        )
    if status < 400:
        return UpstreamFailed("The provider answered with a redirect.", detail=f"HTTP {status}")
    if is_blocked(words):
        return blocked(words)
    return refused(words, detail=detail)


def refused(words: str, *, detail: str = "") -> RefusedInput:
    """Make the error for an input that an upstream finds at fault."""
    said = clean(words)
    error = RefusedInput(f"The provider refused this input: {said}" if said else "The provider refused this input.")
    if detail:
        error.add_note(detail)
    return error
