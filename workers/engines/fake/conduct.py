"""Switches in a prompt that make the fake engine misbehave, so that every fault can be met on purpose.

Anywhere in a message or prompt: `fake:fail`, `fake:refuse`, `fake:lose`, `fake:crash`, `fake:hang`, each
with `=N` only on the first N attempts; `fake:sleep=SECONDS` waits before the first token, or before it fails;
`fake:freeze=SECONDS` blocks the whole worker, as a paused machine does; `fake:tokens=N` sets the length.
"""

import re
from typing import cast

import msgspec

from workers.engines.fake.options import FAULTS, FakeOptions, Fault

MOST_TOKENS = 10_000
LONGEST_S = 3600.0
_SWITCH = re.compile(r"fake:(fail|refuse|lose|crash|hang|sleep|freeze|tokens)\b(?:=(\d+(?:\.\d+)?))?")


class Conduct(msgspec.Struct, frozen=True):
    """How one attempt is to go."""

    fault: Fault
    wait_s: float
    freeze_s: float
    tokens: int


def usual(options: FakeOptions) -> Conduct:
    """Give the conduct of a model where a prompt asks for nothing else."""
    return Conduct(options.behaviour, options.work_ms / 1000, 0.0, options.tokens)


def asked(text: str, attempt: int, conduct: Conduct) -> Conduct:
    """Change the conduct as a prompt asks; the last switch of a kind wins."""
    fault, wait_s, freeze_s, tokens = conduct.fault, conduct.wait_s, conduct.freeze_s, conduct.tokens
    for name, value in _SWITCH.findall(text):
        if name in FAULTS:
            if not value or attempt <= float(value):
                fault = cast(Fault, name)
        elif name == "sleep":
            wait_s = min(float(value or 1), LONGEST_S)
        elif name == "freeze":
            freeze_s = min(float(value or 1), LONGEST_S)
        else:
            tokens = max(1, min(int(float(value or 1)), MOST_TOKENS))
    return Conduct(fault, wait_s, freeze_s, tokens)
