"""Which models leave memory for another."""

from workers.engines.diffusers.shelf import Shelf


def shelf_of(budget: int, **sizes: int) -> Shelf:
    shelf = Shelf(budget)
    for name, size in sizes.items():
        shelf.put(name, size)
    return shelf


def test_without_a_budget_everything_fits() -> None:
    shelf = shelf_of(0, a=10**12)
    assert shelf.fits(10**12)
    assert shelf.ever_fits(10**15)
    assert shelf.leavers(10**15) == []


def test_the_least_recently_used_leave_and_no_more_than_needed() -> None:
    shelf = shelf_of(10, a=4, b=3, c=3)
    assert not shelf.fits(1)
    assert shelf.leavers(1) == ["a"]
    assert shelf.leavers(5) == ["a", "b"]
    shelf.touch("a")
    assert shelf.leavers(1) == ["b"]


def test_what_has_left_makes_room() -> None:
    shelf = shelf_of(10, a=4, b=6)
    shelf.drop("a")
    shelf.drop("a")
    assert (shelf.used_bytes, "a" in shelf, "b" in shelf) == (6, False, True)
    assert shelf.fits(4)


def test_what_is_larger_than_the_budget_never_fits() -> None:
    assert not shelf_of(10).ever_fits(11)
    assert shelf_of(10, a=10).ever_fits(10)
