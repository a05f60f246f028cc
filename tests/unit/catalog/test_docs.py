"""docs/reference/catalog.md describes what there is."""

import re
from pathlib import Path

import pytest

from gateway.catalog.load import ENGINES, MODEL_FIELDS, PARAMETER_FIELDS, POOL_FIELDS
from gateway.catalog.prices import WORDS
from gateway.catalog.rules import TASK_UNITS
from gateway.contract.tasks import TASKS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "catalog.md").read_text()


@pytest.mark.parametrize("name", [*POOL_FIELDS, *MODEL_FIELDS, *PARAMETER_FIELDS, *ENGINES, *TASKS])
def test_every_field_engine_and_task_is_described(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_every_unit_that_can_be_sold_is_described() -> None:
    sold = {unit for units in TASK_UNITS.values() for unit in units}
    for word, (unit, _) in WORDS.items():
        if unit in sold:
            assert f"`{word}`" in PAGE


def test_the_options_of_each_engine_are_described() -> None:
    """Read from the workers' own types, which refuse any other name."""
    from workers.engines.fake.options import FakeOptions
    from workers.engines.vllm.options import VllmOptions

    rows = dict(re.findall(r"^\| `(vllm|fake)` \| (.*) \|$", PAGE, re.MULTILINE))
    for engine, options in (("vllm", VllmOptions), ("fake", FakeOptions)):
        assert set(re.findall(r"`(\w+)`", rows[engine])) == set(options.__struct_fields__)
