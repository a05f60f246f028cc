"""How a request that came through another cloud's dialect was asked for, in its caller's words: kept as notes."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.flow.view import View

ASKED_NOTE = "asked"
MOST_NOTE_CHARS = 16 * 1024
"""An input that is longer in JSON is not told again: it would stand in Postgres for as long as the output does."""
MOST_TEXT_CHARS = 4_096
"""Longer texts in it, such as pictures in base64, are left out of what is told again."""


def noted(asked: Mapping[str, Any], native: Mapping[str, Any]) -> dict[str, str]:
    """Give the notes of an input: itself, and what other families tell of a video that is not made yet."""
    notes = {name: native[name] for name in ("prompt", "size") if isinstance(native.get(name), str)}
    seconds = native.get("seconds")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        notes["seconds"] = f"{seconds:g}" if seconds else ""
    told = json.dumps(_short(asked), separators=(",", ":"))
    return {name: text for name, text in notes.items() if text and len(text) <= MOST_NOTE_CHARS} | (
        {ASKED_NOTE: told} if len(told) <= MOST_NOTE_CHARS else {}
    )


def _short(value: Any) -> Any:
    """Leave out what is too long to be told again."""
    if isinstance(value, dict):
        return {name: short for name, each in value.items() if (short := _short(each)) is not None}
    if isinstance(value, list):
        return [short for each in value if (short := _short(each)) is not None]
    return None if isinstance(value, str) and len(value) > MOST_TEXT_CHARS else value


def asked_of(view: View) -> dict[str, Any]:
    """Give the input of a request as far as it is kept: as it was written, or what is told of it in all families."""
    told = view.notes.get(ASKED_NOTE)
    if told is not None:
        known: dict[str, Any] = json.loads(told)
        return known
    return {name: view.notes[name] for name in ("prompt", "size", "seconds") if name in view.notes}
