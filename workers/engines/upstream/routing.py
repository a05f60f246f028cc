"""The order of a request's targets: wishes of the caller, order, weight, and what recent traffic says."""

import random
from collections.abc import Callable, Sequence

from gateway.contract.pools import Target

LEAST_SHARE = 0.05
"""What is left of the weight of a target that always fails: enough to see it recover."""

Rate = Callable[[Target], float]
"""The recent error rate of a target, from 0 to 1."""


def ordered(targets: Sequence[Target], only: Sequence[str], error_rate: Rate) -> list[Target]:
    """Put targets in the order in which they are to be tried.

    Where the caller names upstreams, those alone, in that order; then by `order`; equals are drawn by weight, of which
    failures take their share.
    """
    if len(targets) == 1 and not only:
        return list(targets)
    allowed = [target for target in targets if not only or target.upstream in only]
    groups: dict[tuple[int, int], list[Target]] = {}
    for target in allowed:
        wish = only.index(target.upstream) if only else 0
        groups.setdefault((wish, target.order), []).append(target)
    return [target for key in sorted(groups) for target in _drawn(groups[key], error_rate)]


def _drawn(group: list[Target], error_rate: Rate) -> list[Target]:
    if len(group) == 1:
        return group
    left = list(group)
    drawn: list[Target] = []
    while left:
        weights = [target.weight * max(LEAST_SHARE, 1 - error_rate(target)) for target in left]
        chosen = random.choices(range(len(left)), weights)[0] if any(weights) else 0
        drawn.append(left.pop(chosen))
    return drawn
