"""docs/reference/catalog.md describes what there is."""

import re
from pathlib import Path

import pytest

from gateway.catalog.entries import MODEL_FIELDS, PARAMETER_FIELDS, WEIGHTS_FIELDS
from gateway.catalog.load import ENGINES, POOL_FIELDS, load
from gateway.catalog.price_rules import TASK_UNITS
from gateway.catalog.prices import WORDS
from gateway.catalog.routes import FORMS, ROUTE_FIELDS
from gateway.catalog.upstreams import PROTOCOLS, UPSTREAM_FIELDS
from gateway.contract.pools import ServedModel
from gateway.contract.tasks import TASKS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "catalog.md").read_text()


NAMES = (
    *POOL_FIELDS,
    *UPSTREAM_FIELDS,
    *MODEL_FIELDS,
    *WEIGHTS_FIELDS,
    *ROUTE_FIELDS,
    *PARAMETER_FIELDS,
    *ENGINES,
    *PROTOCOLS,
    *FORMS,
    *TASKS,
)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_engine_and_task_is_described(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_every_unit_that_can_be_sold_is_described() -> None:
    sold = {unit for units in TASK_UNITS.values() for unit in units}
    for word, (unit, _) in WORDS.items():
        if unit in sold:
            assert f"`{word}`" in PAGE


def test_the_options_of_each_engine_are_described() -> None:
    """Read from the workers' own types, which refuse any other name."""
    from workers.engines.diffusers.options import DiffusersOptions
    from workers.engines.fake.options import FakeOptions
    from workers.engines.speech.options import SpeechOptions
    from workers.engines.triton.options import TritonOptions
    from workers.engines.vllm.options import VllmOptions

    rows = dict(re.findall(r"^\| `(vllm|diffusers|speech|triton|fake)` \| (.*) \|$", PAGE, re.MULTILINE))
    known = {
        "vllm": VllmOptions,
        "diffusers": DiffusersOptions,
        "speech": SpeechOptions,
        "triton": TritonOptions,
        "fake": FakeOptions,
    }
    for engine, options in known.items():
        assert set(re.findall(r"`(\w+)`", rows[engine])) == set(options.__struct_fields__)


def test_the_upstreams_of_the_page_are_right() -> None:
    section = PAGE[PAGE.index("## upstreams") :]
    example = section[section.index("```yaml\n") + 8 :].partition("```\n")[0]
    film = load(example.encode(), "page").models["film-pro"]
    assert film.vendor_fields.keys() == {"cfg_scale"}


def test_what_each_protocol_serves_is_described() -> None:
    from gateway.catalog.upstreams import PROTOCOL_TASKS

    rows = dict(re.findall(r"^\| ([a-z, ]+) \| (.*`.*) \|$", PAGE[PAGE.index("| protocol | tasks |") :], re.MULTILINE))
    for protocol in ("openai", "elevenlabs", "minimax", "kling"):
        assert set(re.findall(r"`([a-z-]+)`", rows[protocol])) == set(PROTOCOL_TASKS[protocol])


def test_workflows_are_described() -> None:
    from gateway.catalog.workflows import STEP_FIELDS
    from gateway.contract.workflow import LOCAL_INPUTS, MEDIA_PROPERTIES, WorkflowOptions

    section = PAGE[PAGE.index("## workflows") : PAGE.index("## In `GET")]
    for name in (*STEP_FIELDS, *WorkflowOptions.__struct_fields__, *LOCAL_INPUTS, *MEDIA_PROPERTIES):
        assert f"`{name}`" in section or f"`{name}`" in PAGE
    for kind in LOCAL_INPUTS.values():
        for field in kind.__struct_fields__:
            assert f"`{field}`" in section


def test_the_workflow_of_the_page_is_right() -> None:
    example = PAGE[PAGE.index("## workflows") :]
    example = example[example.index("```yaml\n") + 8 : example.index("```\n\n| field of a step")]
    models = """
  espeak-ng:
    {tasks: [text-to-speech], description: A voice., routes: [{pool: fake}]}
  tiny-image-to-video:
    {tasks: [image-to-video, text-to-video], description: A film., routes: [{pool: fake}]}
"""
    pools = "  flows: {engine: workflow}\n"
    whole = example.replace(pools, pools + "  fake: {engine: fake}\n") + models
    assert "talking-head" in load(whole.encode(), "page").models


def test_what_a_model_on_triton_may_say_is_described_and_its_examples_are_right() -> None:
    from workers.engines.triton.options import INPUTS, OUTPUTS, options_of

    section = PAGE[PAGE.index("## models on Triton") : PAGE.index("## In `GET")]
    for fields in (*INPUTS.values(), *OUTPUTS.values()):
        assert all(f"`{field}`" in section for field in fields)
    example = section[section.index("```yaml\n") + 8 :].partition("```\n")[0]
    models = load(example.encode(), "page").models
    for model in models.values():
        options_of(ServedModel(name=model.name, tasks=list(model.tasks), source=model.source, options=model.options))
    assert len(models) == 3
