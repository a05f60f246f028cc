"""Whether a finished answer keeps to its format."""

import json

import regex  # comes with vLLM

from workers.engines.vllm.shapes import Constraint

MATCH_S = 0.02
"""How long a pattern may be tried; one that takes longer counts as kept."""


def fits(constraint: Constraint, text: str) -> bool:
    """Say whether the answer fits.

    A grammar that nothing can fit, or that runs out of its budget, lets an answer end early and says so nowhere.
    """
    match constraint:
        case Constraint(kind="choice", value=choices):
            return text in choices
        case Constraint(kind="regex", value=str(pattern)):
            try:
                return regex.fullmatch(pattern, text, timeout=MATCH_S) is not None
            except (regex.error, TimeoutError):
                return True
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
