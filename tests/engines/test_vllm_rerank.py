"""The engine `vllm` on rankings by a cross-encoder."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.contract.inputs import RerankInput
from gateway.pricing.bounds import rerank_tokens
from tests.engines.vllm_driver import Driver, serving
from workers.engine import RefusedInput

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore"),  # vLLM and torch warn of themselves
]

QUERY = "where does the river run"
DOCUMENTS = ["the river runs to the sea", "a tree", "", "größer als 日本", "hm " * 40, "a horse on the mountain"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ranker(models: Path) -> AsyncIterator[Driver]:
    async with serving(models, "tiny-rerank", ["rerank"]) as driver:
        yield driver


async def test_relevances_are_those_that_transformers_gives(ranker: Driver, models: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = str(models / "tiny-rerank")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    judge = AutoModelForSequenceClassification.from_pretrained(folder)
    pairs = [tokenizer(QUERY, document, return_tensors="pt") for document in DOCUMENTS]
    with torch.inference_mode():
        expected = [judge(**pair).logits.sigmoid().item() for pair in pairs]

    attempt = ranker.rerank(query=QUERY, documents=DOCUMENTS)
    results = (await attempt.ranking()).results
    assert [index for index, _ in results] == sorted(range(len(expected)), key=lambda index: -expected[index])
    for index, relevance in results:
        assert math.isclose(relevance, expected[index], abs_tol=1e-4)
    assert attempt.run.units.input_tokens == sum(pair["input_ids"].shape[1] for pair in pairs)
    assert attempt.run.units.output_tokens == 0
    assert attempt.run.phases.forward_us > 0


async def test_tokens_of_all_pairs_are_counted_and_stay_below_the_ceiling(ranker: Driver) -> None:
    given = RerankInput(query=QUERY, documents=DOCUMENTS)
    attempt = ranker.rerank(query=QUERY, documents=DOCUMENTS, top_n=1)
    await attempt.ranking()
    assert 0 < attempt.run.units.input_tokens <= rerank_tokens(given, 2, 1024)


async def test_the_best_are_answered_in_their_order(ranker: Driver) -> None:
    results = (await ranker.rerank(query=QUERY, documents=["a tree"] * 3 + ["a dog"] * 3, top_n=4).ranking()).results
    assert len(results) == 4
    assert {index for index, _ in results[:3]} in ({0, 1, 2}, {3, 4, 5}), "equal documents are equally good"
    relevances = [relevance for _, relevance in results]
    assert 1 >= relevances[0] > relevances[3] >= 0
    assert relevances == sorted(relevances, reverse=True)
    assert len((await ranker.rerank(query=QUERY, documents=["a"], top_n=9).ranking()).results) == 1


async def test_a_document_that_is_too_long_is_named(ranker: Driver) -> None:
    with pytest.raises(RefusedInput, match=r"documents\[1\] with the query: .* 1024 tokens"):
        await ranker.rerank(query=QUERY, documents=["a", "tree " * 5000, "b"]).ranking()
    assert ranker.engine.failure() is None


async def test_a_cancelled_ranking_is_stopped_and_counted_by_document(ranker: Driver) -> None:
    free = ranker.engine.capacity()
    many = ranker.rerank(query=QUERY, documents=["water " * 300] * 1000)
    await many.read(1)
    assert 0 < ranker.engine.capacity() < free, "a ranking leaves room for others"
    await ranker.rerank(query=QUERY, documents=["hm"]).ranking()
    assert not many.task.done()
    many.task.cancel()
    await asyncio.wait([many.task])
    counted = many.run.units.input_tokens
    assert 300 <= counted < 1000 * 300
    await ranker.rerank(query=QUERY, documents=["hm"]).ranking()
    assert many.run.units.input_tokens == counted
    assert ranker.engine.capacity() == free


async def test_text_and_vectors_are_not_its_task(ranker: Driver) -> None:
    with pytest.raises(RefusedInput, match="chat"):
        await ranker.chat().text()
    with pytest.raises(RefusedInput):
        await ranker.embed(input="hm").vectors()
