"""One process of the engine `vllm` for several names: a base that looks its guesses up in the prompt, and adapters."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.contract.pools import ServedModel
from tests.engines.adapters import write_adapter
from tests.engines.vllm_driver import Driver, serving

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore"),  # vLLM and torch warn of themselves
]

BASE = "tiny-llama"
TEXT = "the boy ran to the river and the boy ran to the"
SAID = [{"role": "user", "content": TEXT}]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(models: Path) -> AsyncIterator[Driver]:
    (models / "bare.jinja").write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
    beside = [ServedModel(name="alias", tasks=["chat"], source=f"tiny:{BASE}")]
    for seed, (name, hidden) in enumerate([("lawyer", 128), ("poet", 128), ("narrow", 96)]):
        write_adapter(models / name, seed, hidden=hidden)
        beside.append(ServedModel(name=name, tasks=["chat"], source=f"tiny:{BASE}", options={"adapter": name}))
    async with serving(
        models,
        BASE,
        ["chat"],
        beside=beside,
        chat_template="bare.jinja",
        kv_cache_memory_bytes=64 * 2**20,
        speculative={"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4},
    ) as driver:
        yield driver


async def text(driver: Driver, name: str) -> str:
    return (await driver.call(name, messages=SAID).text()).choices[0].text


async def test_every_name_is_ready_but_an_adapter_of_another_model(shared: Driver) -> None:
    ready = {name for name, state in shared.states.items() if state.state == "ready"}
    assert ready == {BASE, "alias", "lawyer", "poet"}
    assert "the adapter was made for another model" in shared.states["narrow"].detail


async def test_guesses_change_nothing_that_the_model_says(shared: Driver, models: Path) -> None:
    """The likeliest tokens, as transformers draws them from the same weights, without a template and one by one."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = str(models / BASE)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer(TEXT, return_tensors="pt")
    drawn = AutoModelForCausalLM.from_pretrained(folder).generate(
        **prompt, do_sample=False, max_new_tokens=20, min_new_tokens=20
    )
    expected = tokenizer.decode(drawn[0, prompt["input_ids"].shape[1] :])
    assert await text(shared, BASE) == expected
    assert await text(shared, "alias") == expected


async def test_right_guesses_give_several_tokens_a_step_and_all_are_counted(shared: Driver) -> None:
    form = {"type": "regex", "regex": "( river){40}"}
    attempt = shared.call(BASE, messages=SAID, response_format=form, ignore_eos=False, max_tokens=100)
    assert (await attempt.text()).choices[0].text == " river" * 40
    units = attempt.run.units
    assert sum(delta.tokens for delta in attempt.deltas) == units.output_tokens
    assert len(attempt.deltas) < units.output_tokens
    assert max(delta.tokens for delta in attempt.deltas) > 1


async def test_adapters_answer_as_themselves_also_in_one_batch(shared: Driver) -> None:
    names = (BASE, "lawyer", "poet")
    alone = [await text(shared, name) for name in names]
    assert len(set(alone)) == 3
    assert await asyncio.gather(*(text(shared, name) for name in names * 4)) == alone * 4


async def test_a_cached_prefix_is_found_by_its_own_account_and_adapter_only(shared: Driver) -> None:
    """A hit costs less: to share it would tell one account what another has asked."""
    said = [{"role": "user", "content": "water " * 300}]

    async def cached(account: int, model: str = BASE) -> int:
        attempt = shared.call(model, account=account, messages=said, max_tokens=1)
        await attempt.text()
        assert attempt.run.units.input_tokens >= 300
        return attempt.run.units.cached_tokens

    assert await cached(7) == 0
    first = await cached(7)
    assert 0 < first < 310
    assert await cached(8) == 0
    assert await cached(7, "poet") == 0
    assert await cached(7) == first
