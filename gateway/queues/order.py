"""Whether an event follows the one before it: no answer is ever shortened or mixed in silence."""

from typing import Literal

Verdict = Literal["next", "stale", "restarted", "gap"]
"""`next` follows; `stale` is a repeat or of an attempt that lost; `restarted` is the first of a later attempt
after deltas of an earlier one were heard; `gap` means that deltas are missing before it."""


class Order:
    """Judges the events of one request by attempt and sequence number."""

    __slots__ = ("attempt", "due")

    def __init__(self, attempt: int = 0, due: int | None = 0) -> None:
        self.attempt = attempt
        self.due = due
        """The sequence number that comes next; None where it is not known yet."""

    def judge(self, attempt: int, seq: int, *, last: bool) -> Verdict:
        """Judge an event. `seq` is -1 where order is no matter; the `last` event's counts the deltas before it."""
        if attempt < self.attempt:
            return "stale"
        restarted = False
        if attempt > self.attempt:
            restarted = self.due != 0 and self.attempt > 0
            self.attempt, self.due = attempt, 0
        if seq >= 0:
            if self.due is None:
                self.due = seq
            if seq > self.due or (last and seq < self.due):
                return "gap"
            if seq < self.due:
                return "stale"
            if not last:
                self.due = seq + 1
        return "restarted" if restarted else "next"
