"""Files and functions stay small enough to be read at one sitting."""

from statistics import median

import pytest

from tests.shape.sources import EVERYTHING, PACKAGES, ROOT, Function, files, functions, lines

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters(function: Function) -> int:
    arguments = function.args
    named = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in named if name not in {"self", "cls"}])


def test_no_file_is_longer_than_500_lines_and_few_are_longer_than_300() -> None:
    sizes = {str(path.relative_to(ROOT)): lines(path) for path in files(*EVERYTHING)}
    assert {name: size for name, size in sizes.items() if size > 500} == {}
    long = [name for name, size in sizes.items() if size > 300]
    assert len(long) <= 0.02 * len(sizes), long


def test_the_median_file_of_the_packages_is_near_100_lines() -> None:
    assert 50 <= median(lines(path) for path in files(*PACKAGES)) <= 130


def test_no_function_is_longer_than_70_lines_and_few_are_longer_than_45() -> None:
    sizes = {place: length(function) for place, function in functions(*EVERYTHING)}
    assert {place: size for place, size in sizes.items() if size > 70} == {}
    long = [place for place, size in sizes.items() if size > 45]
    assert len(long) <= 0.01 * len(sizes), long


def test_no_function_takes_more_than_seven_parameters() -> None:
    many = {place: parameters(function) for place, function in functions(*PACKAGES, "bench", "deploy")}
    assert {place: count for place, count in many.items() if count > 7} == {}


@pytest.mark.parametrize("folder", EVERYTHING)
def test_no_file_has_a_name_that_says_nothing(folder: str) -> None:
    assert [path for path in files(folder) if VAGUE_NAMES & {path.stem, *path.relative_to(ROOT).parts[:-1]}] == []
