"""Steps and previews of several requests that are drawn together."""

import pytest

from workers.engines.diffusers.drawing import Drawing, Settings
from workers.engines.diffusers.sitting import Deserted, Item, Preview, Sitting, Step, preview_number

SETTINGS = Settings(role="text2image", size=(64, 64), steps=4)


def drawing(*seeds: int) -> Drawing:
    return Drawing(settings=SETTINGS, prompt="a", seeds=seeds)


def test_who_has_left_is_not_drawn_and_the_last_one_ends_it() -> None:
    told: list[Step | Preview] = []
    sitting = Sitting([drawing(1), drawing(2, 3)], told.append)
    assert sitting.items() == [Item(0, 0), Item(1, 0), Item(1, 1)]
    sitting.stepped(sitting.items(), 4)
    assert told == [Step({0: 1, 1: 2}, 4)]
    sitting.leave(0)
    assert sitting.items() == [Item(1, 0), Item(1, 1)]
    sitting.leave(1)
    with pytest.raises(Deserted):
        sitting.stepped([], 4)


@pytest.mark.parametrize(
    ("steps", "previews", "due"), [(6, 2, {2: 0, 4: 1}), (30, 3, {8: 0, 15: 1, 22: 2}), (4, 0, {}), (1, 3, {})]
)
def test_previews_are_spread_evenly(steps: int, previews: int, due: dict[int, int]) -> None:
    found = {done: preview_number(done, steps, previews) for done in range(1, steps + 1)}
    assert {done: number for done, number in found.items() if number is not None} == due
