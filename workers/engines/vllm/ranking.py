"""Rankings: documents in the order of their relevance to a query, from 0 to 1.

A cross-encoder reads each pair, and relevance is the logistic function of the number that it gives. A model of
embeddings reads query and documents apart, and relevance is the cosine of their vectors, moved from -1..1 to 0..1.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gateway.contract.events import RankingOutput
from gateway.contract.inputs import RerankInput
from workers.engine import EngineError, RefusedInput, Run
from workers.engines.vllm.batches import origin_of, pool_each
from workers.engines.vllm.shapes import Origin, Pooled, Prompt, Served

_FAR = 700.0
"""A number beyond which `exp` runs over."""


async def rank(model: Served, run: Run, given: RerankInput, width: int) -> RankingOutput:
    """Rank the documents of one request, `width` of them at a time. Raises RefusedInput, EngineError and EngineLost."""
    if model.scoring is None:
        raise RefusedInput("This model does not rank.")
    relevances = await (_judge if model.scoring == "pairs" else _compare)(model, run, given, width)
    with run.phases.timed("postprocess"):
        if not all(map(math.isfinite, relevances)):
            raise EngineError("The model gave no number for a document.")
        order = sorted(range(len(relevances)), key=lambda index: (-relevances[index], index))
        return RankingOutput(results=[(index, relevances[index]) for index in order[: given.top_n]])


async def _judge(model: Served, run: Run, given: RerankInput, width: int) -> list[float]:
    """Have query and document read together."""
    origin = origin_of(run)
    with run.phases.timed("preprocess"):
        prompts = [await _pair(model, given, index, origin) for index in range(len(given.documents))]
    numbers = await pool_each(run, prompts, width, model.score)
    return [logistic(_floats(each).item()) for each in numbers]


async def _pair(model: Served, given: RerankInput, index: int, origin: Origin) -> Prompt:
    try:
        return await model.pair_prompt(given.query, given.documents[index], origin)
    except RefusedInput as error:
        raise RefusedInput(f"documents[{index}] with the query: {error}") from None


async def _compare(model: Served, run: Run, given: RerankInput, width: int) -> list[float]:
    """Compare the vectors of query and documents."""
    origin = origin_of(run)
    with run.phases.timed("preprocess"):
        prompts = [await model.text_prompt(text, origin) for text in (given.query, *given.documents)]
        _check_pairs(prompts, model.context_tokens)

    async def pool(request_id: str, prompt: Prompt) -> Pooled:
        return await model.embed(request_id, prompt, None)

    query, *documents = map(_floats, await pool_each(run, prompts, width, pool))
    return [(1 + cosine(query, document)) / 2 for document in documents]


def _check_pairs(prompts: Sequence[Prompt], context_tokens: int) -> None:
    """Hold a query and each document to one context together: that is what a request is priced by at most."""
    query, *documents = prompts
    for index, document in enumerate(documents):
        if len(query.ids) + len(document.ids) > context_tokens:
            raise RefusedInput(
                f"The query and documents[{index}] have {len(query.ids) + len(document.ids)} tokens together, "
                f"and {context_tokens} are the most: shorten them."
            )


def _floats(numbers: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(numbers, "<f4")


def logistic(number: float) -> float:
    """Bring a number without bounds to 0..1."""
    return 1 / (1 + math.exp(min(-number, _FAR)))


def cosine(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> float:
    """Give the cosine of two vectors, within -1..1; 0 where one of them is nothing."""
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return max(-1.0, min(1.0, float(one @ other) / length)) if length else 0.0
