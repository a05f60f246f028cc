"""From vLLM's log-probabilities to those of an answer."""

import math
from collections.abc import Mapping, Sequence

from gateway.contract.events import TokenLogprob
from workers.engines.vllm.shapes import Chances

LEAST = -9999.0
"""Stands for a probability of nothing, as OpenAI's API writes it: JSON knows no infinity."""


def token_logprobs(ids: Sequence[int], places: Sequence[Mapping[int, Chances]], rivals: int) -> list[TokenLogprob]:
    """Describe each token with its `rivals` likeliest ones, itself among them where it is one."""
    return [_describe(token, place, rivals) for token, place in zip(ids, places, strict=False)]


def prompt_logprobs(
    ids: Sequence[int], places: Sequence[Mapping[int, Chances] | None], first: str, rivals: int
) -> list[TokenLogprob]:
    """Describe the tokens of a prompt. The first, whose text is `first`, follows nothing: its logprob is NaN."""
    rest = [(token, place) for token, place in zip(ids[1:], places[1:], strict=False) if place is not None]
    return [TokenLogprob(first, math.nan), *(_describe(token, place, rivals) for token, place in rest)]


def _describe(token: int, place: Mapping[int, Chances], rivals: int) -> TokenLogprob:
    chosen = place[token]
    ranked = sorted((each for each in place.values() if (each.rank or rivals + 1) <= rivals), key=_rank)
    top = [(each.decoded_token or "", max(each.logprob, LEAST)) for each in ranked]
    return TokenLogprob(chosen.decoded_token or "", max(chosen.logprob, LEAST), top)


def _rank(chances: Chances) -> int:
    return chances.rank or 0
