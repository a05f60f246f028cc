"""Embeddings: one vector a text, several texts at once."""

import asyncio

from gateway.contract.events import VectorOutput
from gateway.contract.inputs import EmbeddingInput
from workers.engine import Run
from workers.engines.vllm.shapes import Prompt, Served


async def embed(model: Served, run: Run, given: EmbeddingInput, width: int) -> VectorOutput:
    """Embed the texts of one request, `width` of them at a time. A text is counted when its vector is there."""
    texts = [given.input] if isinstance(given.input, str) else given.input
    with run.phases.timed("preprocess"):
        prompts = [await model.text_prompt(text) for text in texts]
    vectors = [b""] * len(texts)
    sizes = [0]
    waiting = iter(enumerate(prompts))

    async def work() -> None:
        for index, prompt in waiting:
            vectors[index], sizes[0] = await _one(model, run, index, prompt, given.dimensions)

    run.began()
    with run.phases.timed("forward"):
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(width, len(texts))):
                    group.create_task(work())
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
    return VectorOutput(vectors=vectors, dimensions=sizes[0])


async def _one(model: Served, run: Run, index: int, prompt: Prompt, dimensions: int | None) -> tuple[bytes, int]:
    answer = await model.embed(f"{run.request.id}-{run.attempt}-{index}", prompt, dimensions)
    run.units.input_tokens += len(prompt.ids)
    return answer
