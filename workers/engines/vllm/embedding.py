"""Embeddings: one vector a text."""

from gateway.contract.events import VectorOutput
from gateway.contract.inputs import EmbeddingInput
from workers.engine import Run
from workers.engines.vllm.batches import origin_of, pool_each
from workers.engines.vllm.shapes import Pooled, Prompt, Served

FLOAT_BYTES = 4


def texts_of(given: EmbeddingInput) -> list[str]:
    """Give the texts of an input."""
    return [given.input] if isinstance(given.input, str) else given.input


async def embed(model: Served, run: Run, given: EmbeddingInput, width: int) -> VectorOutput:
    """Embed the texts of one request, `width` of them at a time."""
    with run.phases.timed("preprocess"):
        prompts = [await model.text_prompt(text, origin_of(run)) for text in texts_of(given)]

    async def pool(request_id: str, prompt: Prompt) -> Pooled:
        return await model.embed(request_id, prompt, given.dimensions)

    vectors = await pool_each(run, prompts, width, pool)
    return VectorOutput(vectors=vectors, dimensions=len(vectors[0]) // FLOAT_BYTES)
