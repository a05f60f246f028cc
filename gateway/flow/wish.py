"""What a caller says of the choice that is left to us: other models, which ways, and by what they are sorted."""

from typing import Literal

import msgspec

from gateway.contract.tasks import Task

AUTO = "auto"
"""The name that leaves the choice of the model to us."""

MOST_MODELS = 8
"""The models that a caller may name in one call."""
MOST_NAMES = 64
"""The names in each of `order`, `only` and `ignore`."""

Sort = Literal["price", "latency", "throughput"]


class UnitLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The highest prices that a model may have, in picos for each unit; None is no limit."""

    input_token: int | None = None
    output_token: int | None = None
    request: int | None = None
    image: int | None = None


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller says of models and ways. Names in it have not been looked up."""

    task: Task | None = None
    """What is to be done, where the family does not say it."""
    models: tuple[str, ...] = ()
    """The models to fall back on, in order."""
    order: tuple[str, ...] = ()
    """The upstreams and pools to try first."""
    only: tuple[str, ...] = ()
    """The upstreams, pools and models that may serve it; empty where all may."""
    ignore: tuple[str, ...] = ()
    """Those that may not."""
    allow_fallbacks: bool = True
    """Whether it may go another way where its first one fails."""
    sort: Sort | None = None
    limits: UnitLimits = UnitLimits()
