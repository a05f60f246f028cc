"""Which requests a list is about, and the SQL that says so."""

from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import msgspec

from gateway.catalog.entries import MAX_DEADLINE_S
from gateway.contract.ids import PREFIX
from gateway.contract.states import OUTCOMES
from gateway.contract.tasks import TASKS
from gateway.reports.ranges import Range

Wanted = Literal["succeeded", "failed", "cancelled", "expired", "unsuccessful"]
"""An outcome, or any but success."""

MOST_OPEN = timedelta(seconds=MAX_DEADLINE_S, hours=1)
"""No request is open for longer: how far before a range those that ended in it were admitted."""
_DIGITS = 32


class RequestFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of requests is narrowed to; all that is set holds together."""

    range: Range
    """Of their ends."""
    id_prefix: str = ""
    """The hexadecimal digits that an id begins with; with it, the range does not count."""
    account_id: int | None = None
    key_id: int | None = None
    model_id: int | None = None
    task: str | None = None
    outcome: Wanted | None = None
    route: str | None = None
    retried: bool = False
    """Only those with more than one attempt."""
    charge_at_least: int | None = None
    """In nanos."""
    total_at_least_ms: int | None = None
    after: UUID | None = None
    """The id that the page before ended with."""

    @property
    def is_counted(self) -> bool:
        """Whether the hourly sums can count exactly these."""
        apart = self.retried or self.charge_at_least is not None or self.total_at_least_ms is not None
        return not (apart or self.id_prefix or self.outcome == "unsuccessful")


class Clauses:
    """Conditions on `usage u` with their arguments, for asyncpg."""

    def __init__(self, wanted: RequestFilter) -> None:
        self.arguments: list[Any] = []
        self.texts: list[str] = []
        self._of_time(wanted)
        self._of_kind(wanted)
        self._of_size(wanted)

    def put(self, value: Any, kind: str) -> str:
        """Take an argument; answers how the statement names it."""
        self.arguments.append(value)
        return f"${len(self.arguments)}::{kind}"

    def __str__(self) -> str:
        """Write the conditions."""
        return " and ".join(self.texts) or "true"

    def _of_time(self, wanted: RequestFilter) -> None:
        if wanted.id_prefix:
            first, last = ids_from(wanted.id_prefix)
            self.texts += [f"u.id >= {self.put(first, 'uuid')}", f"u.id <= {self.put(last, 'uuid')}"]
        else:
            begin, end = wanted.range.from_at, wanted.range.to_at
            self.texts += [
                f"u.id >= {self.put(first_id(begin - MOST_OPEN), 'uuid')}",
                f"u.id < {self.put(first_id(end), 'uuid')}",
                f"u.finished_at >= {self.put(begin, 'timestamptz')}",
                f"u.finished_at < {self.put(end, 'timestamptz')}",
            ]
        if wanted.after is not None:
            self.texts.append(f"u.id < {self.put(wanted.after, 'uuid')}")

    def _of_kind(self, wanted: RequestFilter) -> None:
        if wanted.key_id is not None:
            self.texts.append(f"u.api_key_id = {self.put(wanted.key_id, 'bigint')}")
        if wanted.model_id is not None:
            self.texts.append(f"u.model_id = {self.put(wanted.model_id, 'int')}")
        if wanted.task is not None:
            self.texts.append(f"u.task = {TASKS.index(wanted.task)}")
        if wanted.outcome == "unsuccessful":
            self.texts.append("u.outcome <> 0")
        elif wanted.outcome is not None:
            number = OUTCOMES.index(wanted.outcome)
            self.texts.append(f"u.outcome = {number}" + (" and u.outcome <> 0" if number else ""))
        if wanted.route is not None:
            self.texts.append(f"u.route = {self.put(wanted.route, 'text')}")

    def _of_size(self, wanted: RequestFilter) -> None:
        if wanted.retried:
            self.texts.append("(u.attempt > 1 or (select count(*) from attempt t where t.request_id = u.id) > 1)")
        if wanted.charge_at_least is not None:
            self.texts.append(f"u.charge_nanos >= {self.put(wanted.charge_at_least, 'bigint')}")
        if wanted.total_at_least_ms is not None:
            least = timedelta(milliseconds=wanted.total_at_least_ms)
            self.texts.append(f"u.finished_at - u.created_at >= {self.put(least, 'interval')}")


def first_id(at: datetime) -> UUID:
    """Give the lowest id that a request admitted at an instant can have: ids begin with their milliseconds."""
    return UUID(int=max(int(at.timestamp() * 1000), 0) << 80)


def ids_from(prefix: str) -> tuple[UUID, UUID]:
    """Give the lowest and the highest id that begin with these digits."""
    return UUID(hex=prefix.ljust(_DIGITS, "0")), UUID(hex=prefix.ljust(_DIGITS, "f"))


def digits_of(text: str) -> str | None:
    """Read an id of a request, or how one begins; None for what is none."""
    digits = text.strip().lower().removeprefix(PREFIX).replace("-", "")
    return digits if 0 < len(digits) <= _DIGITS and set(digits) <= set("0123456789abcdef") else None
