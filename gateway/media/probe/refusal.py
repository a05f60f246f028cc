"""Why a probe does not take a file."""

from typing import Literal

Why = Literal["unreadable", "wrong_kind", "not_supported", "over_limit"]


class Refused(Exception):
    """A file that is not taken; `said` goes on after the words "This file"."""

    def __init__(self, why: Why, said: str) -> None:
        super().__init__(said)
        self.why: Why = why
        self.said = said
