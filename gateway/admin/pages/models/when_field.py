"""The conditions of a price row as the form's field holds them, and back."""

import json

from gateway.catalog.fields import Fields
from gateway.catalog.problems import CatalogError, Report
from gateway.catalog.when import read_when
from gateway.pricing.conditions import Condition, when_plain

_WORDS = {"true", "false", "null", "yes", "no", "on", "off"}


def when_words(conditions: tuple[Condition, ...]) -> str:
    """Write conditions as the field holds them: `resolution: 720p, seconds: {from: 5, below: 10}`."""
    return ", ".join(f"{name}: {_flow(value)}" for name, value in when_plain(conditions).items())


def read_conditions(text: str) -> tuple[Condition, ...]:
    """Read the field of a row's conditions. Raises ValueError with what was expected."""
    if not text:
        return ()
    from gateway.catalog.parse import parse  # here: a YAML parser takes 2 MB that only editors of prices need

    try:
        root = parse(f"when: {{{text}}}".encode(), "when")
        report = Report()
        plain = Fields(root, "", report, root.line).plain("when")  # type: ignore[arg-type]  # a mapping, as written above
    except CatalogError:
        raise ValueError("conditions such as `resolution: 720p` or `seconds: {from: 5, below: 10}`") from None
    return read_when(plain)


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {json.dumps(bound)}" for name, bound in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(_flow(each) for each in value)}]"
    plain = isinstance(value, str) and value.isascii() and value.replace("-", "").isalnum() and not value.isdecimal()
    return str(value) if plain and str(value).lower() not in _WORDS else json.dumps(value)
