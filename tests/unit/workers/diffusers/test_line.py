"""Which requests run next, and together: no torch, no clock."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.engines.diffusers.line import CHOICE, MOST_PASSES, MOST_WAIT_S, SHORT_S, Limits, Line, Pick, Place, room


def line_of(*places: Place[str], images: int = 4, wait_s: float = 0.0) -> Line[str]:
    line: Line[str] = Line(lambda _: Limits(images, wait_s))
    for place in places:
        line.join(place)
    return line


def place(job: str, model: str = "a", company: str = "x", images: int = 1, arrived_s: float = 0.0) -> Place[str]:
    return Place(job=job, model=model, company=company, images=images, arrived_s=arrived_s)


def loaded(*names: str) -> Callable[[str], bool]:
    return lambda name: name in names


def jobs(pick: Pick[str] | None) -> str:
    return "" if pick is None else "".join(place.job for place in pick.places)


def test_nobody_waits() -> None:
    assert line_of().pick(loaded("a"), 0.0) is None


def test_those_alike_run_together_in_their_order_up_to_the_limit() -> None:
    line = line_of(*(place(job) for job in "12345"))
    assert jobs(line.pick(loaded("a"), 0.0)) == "1234"
    assert jobs(line.pick(loaded("a"), 0.0)) == "5"
    assert len(line) == 0


def test_what_differs_in_size_or_model_waits_for_its_own_turn() -> None:
    line = line_of(place("1"), place("2", company="y"), place("3"), place("4", model="b"))
    assert [jobs(line.pick(loaded("a", "b"), 0.0)) for _ in range(3)] == ["13", "2", "4"]


def test_images_count_and_not_requests_and_nobody_is_overtaken_by_a_smaller_one() -> None:
    line = line_of(place("1", images=3), place("2", images=2), place("3"))
    assert [jobs(line.pick(loaded("a"), 0.0)) for _ in range(2)] == ["1", "23"]
    assert jobs(line_of(place("1", images=9), place("2")).pick(loaded("a"), 0.0)) == "1"


def test_who_has_left_is_not_picked() -> None:
    gone = place("1")
    line = line_of(gone, place("2"))
    line.leave(gone)
    line.leave(gone)
    assert jobs(line.pick(loaded("a"), 0.0)) == "2"


def test_company_is_waited_for_as_long_as_the_model_says_and_no_longer_than_needed() -> None:
    line = line_of(place("1"), images=2, wait_s=0.5)
    pick = line.pick(loaded("a"), 0.1)
    assert pick is not None
    assert (pick.places, pick.look_s) == ([], 0.5)
    assert jobs(line.pick(loaded("a"), 0.5)) == "1"
    full = line_of(place("1"), place("2"), images=2, wait_s=0.5)
    assert jobs(full.pick(loaded("a"), 0.0)) == "12"


def test_others_go_on_while_one_waits_for_company() -> None:
    line: Line[str] = Line(lambda name: Limits(2, 9.0 if name == "a" else 0.0))
    line.join(place("1"))
    line.join(place("2", model="b"))
    assert jobs(line.pick(loaded("a", "b"), 0.0)) == "2"


def test_what_is_loaded_goes_before_what_would_send_it_away() -> None:
    line = line_of(place("1", model="b"), place("2"), place("3", model="b"))
    assert [jobs(line.pick(loaded("a"), 0.0)) for _ in range(2)] == ["2", "13"]


def test_nobody_is_passed_over_more_than_so_often() -> None:
    line = line_of(place("old", model="b"), images=1)
    order = []
    for number in range(MOST_PASSES + 2):
        line.join(place(str(number)))
        order.append(jobs(line.pick(loaded("a"), 0.0)))
    assert order == [*map(str, range(MOST_PASSES)), "old", str(MOST_PASSES)]


def test_nobody_is_passed_over_for_longer_than_so_long() -> None:
    line = line_of(place("old", model="b"), place("new", arrived_s=1.0))
    assert jobs(line.pick(loaded("a"), MOST_WAIT_S)) == "old"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(1, 5)), max_size=40))
def test_everybody_has_a_turn_once_whatever_comes(wanted: list[tuple[str, str, int]]) -> None:
    places = [place(f"{at},", *one) for at, one in enumerate(wanted)]
    line, ran, now_loaded = line_of(*places), "", "a"
    while (pick := line.pick(loaded(now_loaded), 0.0)) is not None:
        assert len({(one.model, one.company) for one in pick.places}) == 1
        assert len(pick.places) == 1 or sum(one.images for one in pick.places) <= 4
        now_loaded = pick.places[0].model
        ran += jobs(pick)
    assert sorted(ran.split(",")) == sorted([*(str(at) for at in range(len(wanted))), ""])


@pytest.mark.parametrize(
    ("given_room", "expected"),
    [
        ({"models": 1, "waiting": 0, "left_s": 0.0}, 8),
        ({"models": 1, "waiting": 3, "left_s": 0.0}, 5),
        ({"models": 1, "waiting": 0, "left_s": SHORT_S}, 8),
        ({"models": 1, "waiting": 0, "left_s": SHORT_S + 1}, 0),
        ({"models": 1, "waiting": 9, "left_s": 0.0}, 0),
    ],
)
def test_a_worker_takes_a_full_batch_and_nothing_behind_long_work(given_room: dict[str, Any], expected: int) -> None:
    assert room(most_images=8, **given_room) == expected


def test_a_worker_of_several_models_takes_enough_to_choose_from() -> None:
    assert room(most_images=1, models=3, waiting=0, left_s=0.0) == CHOICE
    assert room(most_images=1, models=1, waiting=0, left_s=0.0) == 1
