"""The engine `vllm` on embeddings."""

import math
import struct
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gateway.contract.events import VectorOutput
from tests.engines.vllm_driver import Driver, serving
from workers.engine import RefusedInput

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore"),  # vLLM and torch warn of themselves
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Driver]:
    async with serving(tmp_path_factory.mktemp("models"), "tiny-embed", ["embedding", "rerank"]) as driver:
        yield driver


def numbers(output: VectorOutput) -> list[tuple[float, ...]]:
    return [struct.unpack(f"<{output.dimensions}f", vector) for vector in output.vectors]


def cosine(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_a_vector_has_the_size_of_the_model_and_length_one(embedder: Driver) -> None:
    output = await embedder.embed(input="the river").vectors()
    (vector,) = numbers(output)
    assert output.dimensions == len(vector) == 128
    assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-4)


async def test_each_text_of_a_batch_gets_its_own_vector_in_order(embedder: Driver) -> None:
    texts = [f"text number {number}" for number in range(100)]
    attempt = embedder.embed(input=texts)
    batch = numbers(await attempt.vectors())
    alone = embedder.embed(input=texts[57])
    (single,) = numbers(await alone.vectors())
    assert len(batch) == 100
    assert cosine(batch[57], single) > 0.9999
    assert len(set(batch)) == 100
    assert attempt.run.units.input_tokens >= 100 * alone.run.units.input_tokens - 100
    assert attempt.run.units.output_tokens == 0


async def test_the_same_text_gives_the_same_vector_and_a_like_one_a_near_one(embedder: Driver) -> None:
    texts = ["the boy ran to the river", "the boy ran to the river", "the boy ran to the sea", "9!?;:.,xyz"]
    first, again, near, far = numbers(await embedder.embed(input=texts).vectors())
    assert cosine(first, again) > 0.99999
    assert cosine(first, near) > cosine(first, far)


async def test_fewer_dimensions_are_the_first_ones_at_length_one(embedder: Driver) -> None:
    (whole,) = numbers(await embedder.embed(input="the river").vectors())
    output = await embedder.embed(input="the river", dimensions=32).vectors()
    (cut,) = numbers(output)
    assert output.dimensions == 32
    length = math.hypot(*whole[:32])
    assert all(math.isclose(a, b / length, abs_tol=1e-3) for a, b in zip(cut, whole, strict=False))


@pytest.mark.parametrize(
    "given", [{"dimensions": 33}, {"dimensions": 4096}, {"input": "x" * 5000}, {"input": ["hm", ""]}]
)
async def test_what_the_model_cannot_do_is_refused(embedder: Driver, given: dict[str, object]) -> None:
    with pytest.raises(RefusedInput):
        await embedder.embed(**{"input": "hm"} | given).vectors()
    assert embedder.engine.failure() is None


async def test_a_batch_leaves_room_for_others(embedder: Driver) -> None:
    free = embedder.engine.capacity()
    batch = embedder.embed(input=["water " * 200] * 500)
    await embedder.embed(input="hm").vectors()
    assert not batch.task.done()
    assert 0 < embedder.engine.capacity() < free
    await batch.vectors()
    assert embedder.engine.capacity() == free


async def test_text_is_not_its_task(embedder: Driver) -> None:
    with pytest.raises(RefusedInput, match="chat"):
        await embedder.chat().text()


async def test_a_model_of_embeddings_ranks_by_the_cosine_of_its_vectors(embedder: Driver) -> None:
    query, documents = "the boy ran to the river", ["9!?;:.,xyz", "the boy ran to the sea", "the boy ran to the river"]
    attempt = embedder.rerank(query=query, documents=documents)
    results = (await attempt.ranking()).results
    assert [index for index, _ in results] == [2, 1, 0]
    alone = embedder.embed(input=[query, *documents])
    first, *rest = numbers(await alone.vectors())
    for index, relevance in results:
        assert math.isclose(relevance, (1 + cosine(first, rest[index])) / 2, abs_tol=1e-4)
    assert results[0][1] > 0.9999
    assert attempt.run.units == alone.run.units


async def test_query_and_document_share_one_context(embedder: Driver) -> None:
    """Each would fit by itself; the most that a ranking can cost counts one context for each pair."""
    half = "water " * 2500
    with pytest.raises(RefusedInput, match=r"documents\[1\] have \d+ tokens together, and 4096 are the most"):
        await embedder.rerank(query=half, documents=["hm", half]).ranking()
