"""How models of diffusers are loaded, leave memory and come back, and which are never loaded."""

import asyncio
import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.contract.pools import ServedModel
from tests.engines.diffusers_driver import LTX, SD, WAN, Attempt, Driver, serving, until
from workers.engine import EngineError
from workers.engines.diffusers.options import MIB

pytestmark = [pytest.mark.filterwarnings("ignore")]


def ask(driver: Driver, model: str, **more: Any) -> Attempt:
    given: dict[str, Any] = {"prompt": "a", "size": "32x32", "steps": 1} | more
    if model in ("wan", "ltx"):
        return driver.ask(model, "text-to-video", frames=1, **given)
    return driver.ask(model, "text-to-image", **given)


async def test_what_does_not_fit_is_loaded_on_demand_and_the_least_recently_used_leaves(
    diffusers_models: Path, tmp_path: Path
) -> None:
    async with serving(diffusers_models, tmp_path, SD, WAN, LTX, memory_bytes=6 * MIB) as driver:
        assert [driver.state(name) for name in ("sd", "wan", "ltx")] == ["ready", "ready", "on_demand"]
        came = ask(driver, "ltx")
        await came.output()
        assert came.run.phases.load_us > 0
        assert [driver.state(name) for name in ("sd", "wan", "ltx")] == ["on_demand", "ready", "ready"]
        again = ask(driver, "ltx")
        await again.output()
        assert again.run.phases.load_us == 0
        back = ask(driver, "sd")
        await back.output()
        assert [state.state for state in driver.states["sd"]] == [
            "loading",  # its source and options are looked at
            "loading",
            "ready",
            "on_demand",
            "loading",
            "ready",
        ]
        assert driver.state("wan") == "on_demand", "it was used longer ago than the other"


async def test_requests_for_what_is_loaded_go_first_and_the_others_still_have_their_turn(
    diffusers_models: Path, tmp_path: Path
) -> None:
    """The upscaler and Stable Diffusion do not fit together."""
    two = [SD, ServedModel(name="sd2", tasks=["text-to-image"], source="tiny:tiny-sd")]
    async with serving(diffusers_models, tmp_path, *two, memory_bytes=6 * MIB) as driver:
        first = ask(driver, "sd", steps=30)
        await first.drawn(1)
        order: list[str] = []
        wanted = ["sd2", "sd", "sd2", "sd"]
        attempts = [ask(driver, name, guidance=1.0 + at) for at, name in enumerate(wanted)]
        for attempt in attempts:
            name = attempt.run.request.model
            attempt.task.add_done_callback(lambda _, name=name: order.append(name))
        await asyncio.gather(*(attempt.output() for attempt in attempts), first.output())
        assert order == ["sd", "sd", "sd2", "sd2"], "one change of models instead of three"
        assert driver.engine.capacity() > 1


async def test_a_model_larger_than_the_budget_is_failed_with_the_figures(
    diffusers_models: Path, tmp_path: Path
) -> None:
    large = ServedModel(name="sd", tasks=["text-to-image"], source="tiny:tiny-sd", options={"memory_mb": 9000})
    async with serving(diffusers_models, tmp_path, large, WAN, memory_bytes=100 * MIB) as driver:
        assert driver.state("sd") == "failed"
        assert "9000 MB" in driver.states["sd"][-1].detail
        assert driver.state("wan") == "ready"


@pytest.mark.parametrize(
    ("options", "bytes_each"), [({"dtype": "bfloat16"}, 2), ({"quantization": "float8"}, 1), ({"dtype": "float32"}, 4)]
)
async def test_weights_are_kept_in_the_precision_that_is_asked_for(
    diffusers_models: Path, tmp_path: Path, options: dict[str, Any], bytes_each: int
) -> None:
    model = ServedModel(name="sd", tasks=["text-to-image"], source="tiny:tiny-sd", options=options)
    async with serving(diffusers_models, tmp_path, model) as driver:
        assert driver.state("sd") == "ready", driver.states
        await ask(driver, "sd").picture()
        pipeline: Any = driver.engine.gallery.loaded("sd")
        weight = pipeline._base.unet.down_blocks[0].resnets[0].conv1.weight
        assert weight.element_size() == bytes_each


@pytest.mark.skipif(not find_spec("torchao"), reason="torchao is not installed")
async def test_weights_are_kept_as_whole_numbers_of_8_bits(diffusers_models: Path, tmp_path: Path) -> None:
    small = msgspec.structs.replace(WAN, name="small", options={"quantization": "int8"})
    async with serving(diffusers_models, tmp_path, WAN, small) as driver:
        assert driver.state("small") == "ready", driver.states
        await driver.ask("small", "text-to-video", prompt="a", size="32x32", frames=1, steps=1).film()
        usual, quantised = (driver.engine.gallery.loaded(name) for name in ("wan", "small"))
        assert usual is not None
        assert quantised is not None
        assert quantised.size_bytes < usual.size_bytes


async def test_one_set_of_weights_serves_several_tasks_from_the_same_memory(
    diffusers_models: Path, tmp_path: Path
) -> None:
    async with serving(diffusers_models, tmp_path, SD) as driver:
        await driver.ask(
            "sd", "image-edit", prompt="a", image=driver.picture(), mask=driver.picture(kind="jpeg"), steps=2
        ).output()
        pipeline: Any = driver.engine.gallery.loaded("sd")
        assert set(pipeline._roles) == {"text2image", "image2image", "inpaint"}
        assert len({id(each.unet) for each in pipeline._roles.values()}) == 1


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (ServedModel(name="m", tasks=["text-to-image"], source="nowhere"), "neither a folder"),
        (ServedModel(name="m", tasks=["text-to-image"], source="tiny:nothing"), "no tiny model"),
        (ServedModel(name="m", tasks=["chat"], source="tiny:tiny-sd"), "does not do chat"),
        (ServedModel(name="m", tasks=["text-to-video"], source="tiny:tiny-sd"), "no text2video"),
        (ServedModel(name="m", tasks=["text-to-image"], source="tiny:tiny-wan"), "makes video"),
        (ServedModel(name="m", tasks=["text-to-image"], source="tiny:tiny-sd", options={"x": 1}), "x"),
    ],
)
async def test_what_cannot_be_served_is_failed_with_the_reason_and_stops_no_other(
    diffusers_models: Path, tmp_path: Path, model: ServedModel, named: str
) -> None:
    async with serving(diffusers_models, tmp_path, model, WAN) as driver:
        assert driver.state("m") == "failed"
        assert named in driver.states["m"][-1].detail
        assert driver.state("wan") == "ready"


def copied(models: Path, folder: Path) -> Path:
    from workers.tiny.models import make_tiny

    make_tiny(models, ["tiny-sd"])
    shutil.copytree(models / "tiny-sd", folder / "copy")
    return folder / "copy"


async def failure_of(source: Path, tmp_path: Path) -> str:
    model = ServedModel(name="m", tasks=["text-to-image"], source=str(source))
    async with serving(tmp_path, tmp_path, model) as driver:
        assert driver.state("m") == "failed"
        return driver.states["m"][-1].detail


async def test_weights_that_are_not_safetensors_are_not_read(diffusers_models: Path, tmp_path: Path) -> None:
    """A pickle that would leave a mark if it were opened."""
    import torch

    folder = copied(diffusers_models, tmp_path)
    marked = tmp_path / "opened"

    class Mark:
        def __reduce__(self) -> Any:
            return Path.touch, (marked,)

    (folder / "unet" / "diffusion_pytorch_model.safetensors").unlink()
    torch.save(Mark(), folder / "unet" / "diffusion_pytorch_model.bin")
    assert "diffusion_pytorch_model.safetensors" in await failure_of(folder, tmp_path)
    assert not marked.exists()


@pytest.mark.parametrize("where", ["component", "pipeline"])
async def test_code_beside_the_weights_is_not_run(diffusers_models: Path, tmp_path: Path, where: str) -> None:
    folder = copied(diffusers_models, tmp_path)
    marked = tmp_path / "ran"
    code = f"import pathlib\npathlib.Path({str(marked)!r}).touch()\nfrom diffusers import *\n"
    index = json.loads((folder / "model_index.json").read_text())
    if where == "component":
        index["unet"] = ["evil", "UNet2DConditionModel"]
        (folder / "unet" / "evil.py").write_text(code)
    else:
        index["_class_name"] = ["evil", "StableDiffusionPipeline"]
        (folder / "evil.py").write_text(code)
    (folder / "model_index.json").write_text(json.dumps(index))
    assert await failure_of(folder, tmp_path)
    assert not marked.exists()
    assert not any("evil" in name for name in sys.modules)


async def test_a_model_whose_files_went_away_fails_its_requests_and_comes_back_with_them(
    diffusers_models: Path, tmp_path: Path
) -> None:
    folder = copied(diffusers_models, tmp_path)
    one = ServedModel(name="one", tasks=["text-to-image"], source=str(folder))
    async with serving(diffusers_models, tmp_path, SD, one, memory_bytes=6 * MIB) as driver:
        assert driver.state("one") == "on_demand"
        folder.rename(tmp_path / "away")
        with pytest.raises(EngineError, match="could not be loaded"):
            await ask(driver, "one").output()
        assert driver.state("one") == "failed"
        (tmp_path / "away").rename(folder)
        await ask(driver, "one").picture()
        assert driver.state("one") == "ready"
        await ask(driver, "sd").picture()


async def test_an_engine_that_is_told_to_stop_while_it_draws_stops_at_once(
    diffusers_models: Path, tmp_path: Path
) -> None:
    async with serving(diffusers_models, tmp_path, SD) as driver:
        attempt = ask(driver, "sd", steps=500, size="128x128")
        await attempt.drawn(1)
        attempt.task.cancel()
    await until(lambda: attempt.task.done())
