"""How a Triton server and its models come, go, and come back."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
from tritonclient.grpc import InferenceServerClient

from gateway.contract.pools import ModelState, ServedModel
from gateway.stack.ports import free_port
from tests.engines.triton.driver import PATIENCE_S, SLOW, TEXT, loaded, served, serving
from tests.engines.triton.server import TritonServer
from tests.engines.triton.test_tensors import EMBED, PAINTER
from workers.engine import EngineError, EngineLost
from workers.engines.triton import readiness
from workers.engines.triton.engine import TritonEngine


async def failed(model: ServedModel, models_dir: Path = Path()) -> str:
    """Load a model that must fail, and give the reason."""
    async with loaded(model, models_dir=models_dir) as driver:
        assert driver.states[model.name].state == "failed"
        assert driver.engine.capacity() == 0
        return driver.states[model.name].detail


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "http://127.0.0.1:8001/x"}, "url"),
        ({"api_base": "x"}, "api_base"),
        ({"model_name": "nothing"}, "no model nothing"),
        ({"model_name": "nothing", "load": True}, "does not load"),
        ({"model_name": "left_alone"}, "not loaded"),
        ({"model_name": "ensemble", "model_version": "7"}, "not loaded|no model"),
        ({"model_name": "ensemble", "constants": {"lora": 1}}, "no input lora"),
        ({"model_name": "ensemble", "chat_template": "{% for %}"}, "template"),
        ({"model_name": "ensemble", "inputs": {"x": "prompt"}}, "prompt"),
        ({"model_name": "old"}, "count"),
        ({"model_name": "old", "token_counts": "server"}, "count"),
        ({"model_name": "embed_text"}, "no text_input"),
        ({"tls": True, "tls_ca": "/nowhere"}, "tls"),
    ],
)
async def test_text_that_cannot_be_served_is_reported_with_the_reason(
    triton: TritonServer, options: dict[str, Any], said: str
) -> None:

    detail = await failed(served(triton, ["chat"], **options))
    assert re.search(said, detail), detail


@pytest.mark.parametrize(
    ("tasks", "options", "said"),
    [
        (["embedding"], EMBED | {"outputs": {}}, "vector"),
        (["embedding"], EMBED | {"outputs": {"VECTOR": "vector"}}, "count"),
        (["embedding"], EMBED | {"inputs": {"WORDS": "input"}}, "no input WORDS"),
        (["embedding"], EMBED | {"outputs": {"V": "vector"}, "token_counts": "none"}, "no output V"),
        (["embedding"], EMBED | {"model_name": "embed_tokens", "inputs": {"input_ids": "input_ids"}}, "TOKENS|VECTOR"),
        (["embedding", "chat"], EMBED, "apart"),
        (["text-to-image"], EMBED, "input"),
        (["text-to-image"], PAINTER | {"inputs": {"PROMPT": "prompt"}}, "needs"),
        (["text-to-image"], PAINTER | {"pixel_range": [1, 1]}, "pixel_range"),
    ],
)
async def test_tensors_that_do_not_fit_are_reported_with_the_reason(
    triton: TritonServer, tasks: list[Any], options: dict[str, Any], said: str
) -> None:

    detail = await failed(served(triton, tasks, **options))
    assert re.search(said, detail), detail


async def test_a_source_without_a_tokenizer_is_reported(triton: TritonServer, tmp_path: Path) -> None:
    assert "tokenizer.json" in await failed(served(triton, ["chat"], source="nowhere", **TEXT), tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "tokenizer.json").write_text("{}")
    assert "tokenizer" in await failed(served(triton, ["chat"], source="broken", **TEXT), tmp_path)


async def test_models_of_one_server_share_a_pool_and_others_do_not(triton: TritonServer) -> None:
    other = served(triton, ["chat"], "other", **TEXT)
    other = ServedModel(name="other", tasks=["chat"], options=other.options | {"url": f"127.0.0.1:{free_port()}"})
    async with loaded(
        served(triton, ["completion"], "text", max_concurrency=3, **TEXT),
        served(triton, ["embedding"], "vectors", max_concurrency=2, **EMBED),
        other,
    ) as driver:
        assert {name: state.state for name, state in driver.states.items()} == {
            "text": "ready",
            "vectors": "ready",
            "other": "failed",
        }
        assert "pool of its own" in driver.states["other"].detail
        assert driver.engine.capacity() == 2
        assert await driver.complete("hello", "text", max_tokens=1).said() == " gate"
        assert (await driver.embed("a", "vectors").vectors()).dimensions == 8


async def test_a_server_that_is_not_there_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    states: list[ModelState] = []
    engine = TritonEngine(tmp_path)
    model = ServedModel(
        name="m", tasks=["chat"], options={"url": f"127.0.0.1:{free_port()}", "wait_s": 1.2, "token_counts": "none"}
    )
    began = time.perf_counter()
    await engine.load([model], lambda _, state: states.append(state))
    await engine.unload()
    assert time.perf_counter() - began >= 1.2
    assert states[1] == ModelState(state="loading", detail="its server does not answer")
    assert states[-1] == ModelState(state="failed", detail="its server does not answer after 1.2 s")


async def test_a_model_that_the_server_lets_go_is_reported_and_comes_back(
    triton: TritonServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "LOOK_S", 0.1)
    async with serving(triton, ["embedding"], **EMBED) as driver:
        with InferenceServerClient(triton.url) as client:
            client.unload_model("embed_text")
            async with asyncio.timeout(PATIENCE_S):
                while driver.states["m"].state != "failed":
                    await asyncio.sleep(0.05)
            with pytest.raises(EngineError):
                await driver.embed("a").vectors()
            await asyncio.to_thread(client.load_model, "embed_text")
        async with asyncio.timeout(PATIENCE_S):
            while driver.states["m"].state != "ready":
                await asyncio.sleep(0.05)
        assert driver.engine.failure() is None
        assert (await driver.embed("a").vectors()).dimensions == 8


async def test_silence_is_an_error(triton: TritonServer) -> None:
    async with serving(triton, ["text-to-image"], silence_s=0.2, **PAINTER) as driver:
        with pytest.raises(EngineError, match=r"0\.2 seconds"):
            await driver.paint("a gate", steps=300).images()


async def test_a_server_that_dies_loses_the_engine_and_the_next_one_waits_for_it(
    triton_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker ends with its engine; `faregate up` starts the next, which must find the server again."""
    monkeypatch.setattr(readiness, "LOOK_S", 0.1)
    server = TritonServer(triton_program, tmp_path, only=["slow"])
    try:
        await asyncio.to_thread(server.start)
        async with serving(server, ["completion"], **SLOW) as running, serving(server, ["completion"], **SLOW) as idle:
            attempt = running.complete("hello", max_tokens=2000)
            await attempt.produced(2)
            server.kill()
            with pytest.raises(EngineLost):
                await attempt.text()
            async with asyncio.timeout(PATIENCE_S):
                while idle.engine.failure() is None:
                    await asyncio.sleep(0.05)
        states: list[ModelState] = []
        engine = TritonEngine(tmp_path)
        loading = asyncio.create_task(
            engine.load([served(server, ["completion"], **SLOW)], lambda _, state: states.append(state))
        )
        async with asyncio.timeout(PATIENCE_S):
            while len(states) < 2:
                await asyncio.sleep(0.05)
        assert states[-1].detail == "its server does not answer"
        await asyncio.to_thread(server.start, wait=False)
        await asyncio.wait_for(loading, PATIENCE_S)
        assert states[-1].state == "ready", states[-1]
        await engine.unload()
    finally:
        server.kill()
