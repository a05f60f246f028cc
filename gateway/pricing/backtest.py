"""What a backtest asks and answers: a draft of a price or a discount, and sums of charges before and after it.

Pure types. The rating of past usage itself happens where that usage is: `gateway.reports.backtest`.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent

DAYS = (7, 30, 90)
"""How far back a backtest may look."""

MOST_GROUPS = 200
"""The most accounts, and the most keys, that a result names: those with the largest change."""


class PriceDraft(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="price"):
    """A price that is not in force: of a model, for all accounts, or for those of one price list."""

    model_id: int
    model: str
    price_list_id: int | None = None
    components: tuple[PriceComponent, ...]
    minimum_nanos: int = 0
    outcome: OutcomePolicy = OutcomePolicy()


class DiscountDraft(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="discount"):
    """A discount that is not in force: off all that one account calls."""

    account_id: int
    discount_ppm: int
    """Millionths off everything."""


Draft = PriceDraft | DiscountDraft


def digest_of(draft: Draft) -> str:
    """Name a draft by its content: a backtest of another digest says nothing about it."""
    return hashlib.sha256(msgspec.json.encode(draft, order="sorted")).hexdigest()[:16]


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Requests, and what they were and would be charged. What could not be rated is in neither figure, but said."""

    requests: int = 0
    """All of them, those that could not be rated too."""
    before_nanos: int = 0
    after_nanos: int = 0
    """Each charge rounded for itself, and at most its hold."""
    capped: int = 0
    """Requests whose charge would pass their hold."""
    capped_nanos: int = 0
    """By how much: holds would be larger under the draft, so up to this much more would come in."""
    unrated: int = 0
    """Requests that do not say what a condition of the draft looks at."""
    unrated_nanos: int = 0
    """What these were charged."""
    unsold: int = 0
    """Requests that the draft has no price for: they would be refused before they run."""
    unsold_nanos: int = 0
    """What these were charged."""
    cost_nanos: int = 0
    """What the rated ones cost, as far as that is known."""
    uncosted: int = 0
    """Rated ones whose cost nobody knows."""

    @property
    def change_nanos(self) -> int:
        """What the draft would have changed."""
        return self.after_nanos - self.before_nanos

    def plus(self, other: "Sums") -> "Sums":
        """Add up two sums, field by field."""
        return Sums(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one account or one key."""

    id: int
    name: str
    account_id: int
    sums: Sums


class BacktestResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished backtest found."""

    from_at: datetime
    to_at: datetime
    took_ms: int
    total: Sums
    accounts: int
    """How many there are; `by_account` names at most `MOST_GROUPS` of them."""
    keys: int
    by_account: tuple[Group, ...]
    """Largest change first."""
    by_key: tuple[Group, ...]


State = Literal["waiting", "running", "done", "failed", "cancelled"]


class Backtest(msgspec.Struct, frozen=True, kw_only=True):
    """One backtest as it stands."""

    id: str
    state: State
    draft: Draft
    digest: str
    days: int
    author: str
    created_at: datetime
    finished_at: datetime | None = None
    rows_done: int = 0
    rows_in_all: int = 0
    """By the hourly sums, so it is an estimate at the edges."""
    result: BacktestResult | None = None
    failure: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in ("waiting", "running")


def largest_first(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Order groups by how much the draft would change them, and keep the first."""
    ordered = sorted(groups, key=lambda group: (-abs(group.sums.change_nanos), -group.sums.before_nanos, group.id))
    return tuple(ordered[:MOST_GROUPS])
