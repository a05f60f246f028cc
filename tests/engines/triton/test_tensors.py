"""Embeddings and images by models that take tensors and give tensors, on a real Triton server."""

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gateway.contract.inputs import ImageInput
from gateway.contract.units import Units
from gateway.pricing.media_bounds import image_units
from tests.engines.triton.driver import PATIENCE_S, Driver, serving, write_tokenizer
from tests.engines.triton.server import TritonServer
from workers.engine import EngineError, RefusedInput

EMBED: dict[str, Any] = {
    "model_name": "embed_text",
    "inputs": {"TEXT": "input"},
    "outputs": {"VECTOR": "vector", "TOKENS": "tokens"},
}
PAINTER: dict[str, Any] = {
    "model_name": "painter",
    "inputs": {
        "PROMPT": "prompt",
        "NEGATIVE": "negative_prompt",
        "WIDTH": "width",
        "HEIGHT": "height",
        "STEPS": "steps",
        "SEED": "seed",
    },
    "outputs": {"IMAGE": "image", "STEPS_RUN": "steps"},
}


@pytest.fixture
async def embedder(triton: TritonServer) -> AsyncIterator[Driver]:
    async with serving(triton, ["embedding"], **EMBED) as driver:
        yield driver


@pytest.fixture
async def painter(triton: TritonServer) -> AsyncIterator[Driver]:
    async with serving(triton, ["text-to-image"], **PAINTER) as driver:
        yield driver


def floats(data: bytes) -> Any:
    return np.frombuffer(data, dtype="<f4")


def expected(text: str) -> Any:
    return np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint8)[:8].astype(np.float32) / 255


async def test_each_text_has_its_vector_over_several_batches(embedder: Driver, triton: TritonServer) -> None:
    texts = [f"text number {index}" for index in range(10)]
    before = triton.statistics("embed_text")
    attempt = embedder.embed(texts)
    output = await attempt.vectors()
    assert output.dimensions == 8
    for text, vector in zip(texts, output.vectors, strict=True):
        assert floats(vector) == pytest.approx(expected(text))
    assert attempt.run.units == Units(input_tokens=30)
    assert triton.statistics("embed_text") - before == 10
    phases = attempt.run.phases
    assert min(phases.transfer_us, phases.forward_us) > 0


async def test_one_text_has_one_vector(embedder: Driver) -> None:
    output = await embedder.embed("café \N{SNOWMAN}", dimensions=8).vectors()
    assert [list(floats(vector)) for vector in output.vectors] == [pytest.approx(expected("café \N{SNOWMAN}"))]


async def test_vectors_may_be_scaled_to_length_one(triton: TritonServer) -> None:
    async with serving(triton, ["embedding"], **EMBED, normalize=True) as driver:
        output = await driver.embed(["a", "b"]).vectors()
    for vector in output.vectors:
        assert np.linalg.norm(floats(vector)) == pytest.approx(1)


async def test_dimensions_that_the_model_does_not_give_are_refused(embedder: Driver) -> None:
    with pytest.raises(RefusedInput, match="dimensions"):
        await embedder.embed("a", dimensions=4).vectors()


async def test_a_text_that_the_model_fails_on_is_an_error_that_quotes_nothing(embedder: Driver) -> None:
    with pytest.raises(EngineError) as raised:
        await embedder.embed(["a", "fail"]).vectors()
    assert "vector" not in str(raised.value)
    assert embedder.engine.capacity() == 64


@pytest.mark.parametrize(("pooling", "value"), [("mean", 3.0), ("first", 2.0)])
async def test_the_vectors_of_tokens_are_pooled_without_the_padding(
    triton: TritonServer, tmp_path: Path, pooling: str, value: float
) -> None:
    """The model gives `[id, 1, size of the batch]` for a token, and huge numbers where the mask is 0."""
    options = {
        "model_name": "embed_tokens",
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask"},
        "outputs": {"last_hidden_state": "vector"},
        "pooling": pooling,
        "context_tokens": 8,
    }
    async with serving(triton, ["embedding"], str(write_tokenizer(tmp_path / "words")), **options) as driver:
        attempt = driver.embed(["hello there gate", "hello"])
        output = await attempt.vectors()
        assert list(floats(output.vectors[0])) == [value, 1.0, 2.0]
        assert list(floats(output.vectors[1])) == [2.0, 1.0, 2.0]
        assert attempt.run.units.input_tokens == 4
        with pytest.raises(RefusedInput, match="9 tokens"):
            await driver.embed("gate " * 9).vectors()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
async def test_an_image_is_what_was_asked_for_and_opens(painter: Driver, kind: str) -> None:
    attempt = painter.paint("a gate", output_format=kind, seed=11, steps=3)
    (item,) = await attempt.images()
    image = opened(item.data)
    assert (image.format or "").lower() == kind
    assert image.size == (item.width, item.height) == (64, 32)
    assert (item.media_type, item.seed, item.size_bytes) == (f"image/{kind}", 11, len(item.data))
    colour = np.random.default_rng(11).integers(0, 256, 3)
    assert np.abs(np.asarray(image.convert("RGB"))[5, 5].astype(int) - colour).max() <= 6
    assert attempt.run.units == Units(images=1, pixels=64 * 32, steps=3)
    assert attempt.run.phases.postprocess_us > 0
    assert attempt.run.phases.forward_us >= 15_000


async def test_images_of_one_call_have_seeds_of_their_own_and_stay_within_the_quote(painter: Driver) -> None:
    attempt = painter.paint("a gate", n=3, seed=5)
    items = await attempt.images()
    assert [item.seed for item in items] == [5, 6, 7]
    assert len({item.data for item in items}) == 3
    assert attempt.run.units == image_units(ImageInput(prompt="a gate", n=3, size="64x32", steps=2))
    (again,) = await painter.paint("a gate", seed=6).images()
    assert again.data == items[1].data
    drawn = {item.seed for _ in range(2) for item in await painter.paint("a gate").images()}
    assert len(drawn) == 2


async def test_planes_of_floating_point_numbers_give_the_same_picture(painter: Driver, triton: TritonServer) -> None:
    (plain,) = await painter.paint("a gate", seed=3).images()
    planes = PAINTER | {"outputs": {"PLANES": "image"}, "layout": "chw", "pixel_range": [-1, 1]}
    async with serving(triton, ["text-to-image"], **planes) as driver:
        attempt = driver.paint("a gate", seed=3, steps=4)
        (item,) = await attempt.images()
    assert np.array_equal(np.asarray(opened(item.data)), np.asarray(opened(plain.data)))
    assert attempt.run.units.steps == 4


async def test_a_wrong_layout_is_an_error(triton: TritonServer) -> None:
    async with serving(triton, ["text-to-image"], **PAINTER | {"layout": "chw"}) as driver:
        with pytest.raises(EngineError, match="layout"):
            await driver.paint("a gate").images()


async def test_optional_inputs_stay_out_and_unknown_ones_are_refused(painter: Driver, triton: TritonServer) -> None:
    plain, dark = painter.paint("a gate"), painter.paint("a gate", negative_prompt="dark")
    await plain.images()
    await dark.images()
    assert triton.diary(plain.id)[0]["negative"] is None
    assert triton.diary(dark.id)[0]["negative"] == "dark"
    with pytest.raises(RefusedInput, match="guidance"):
        await painter.paint("a gate", guidance=3).images()


async def test_an_image_of_another_size_than_asked_for_is_an_error(painter: Driver) -> None:
    attempt = painter.paint("a small gate")
    with pytest.raises(EngineError, match="16x8"):
        await attempt.images()
    assert attempt.run.units == Units()
    (item,) = await painter.paint("a small gate", size="auto").images()
    assert (item.width, item.height) == (128, 128)


async def test_a_cancelled_image_stops_the_server(painter: Driver, triton: TritonServer) -> None:
    attempt = painter.paint("a gate", steps=400)
    async with asyncio.timeout(PATIENCE_S):
        while not triton.diary(attempt.id):
            await asyncio.sleep(0.01)
    attempt.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt.task
    async with asyncio.timeout(PATIENCE_S):
        while (last := triton.diary(attempt.id)[-1])["event"] == "begun":
            await asyncio.sleep(0.01)
    assert last["event"] == "cancelled"
    assert last["steps"] < 400
    assert attempt.run.units == Units()


async def test_a_model_that_fails_is_an_error(painter: Driver) -> None:
    with pytest.raises(EngineError):
        await painter.paint("fail").images()
