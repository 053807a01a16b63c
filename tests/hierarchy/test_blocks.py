"""The tree of cubes that are fitted together: what a cube shares with others, it shares with its parent."""

from itertools import combinations, product

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.hierarchy.blocks import Block, _items, arranged
from tests.hierarchy.trees import AXES, TREES, cube

CHOICES = [
    ("GEO.L", "GEO.M", "GEO.H"),
    ("AGE.L", "AGE.H", "AGE.X", "AGE.Y"),
    ("SEX",),
    ("WORK",),
    ("EDU",),
]


def random_cubes(seed: int) -> list:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    made = []
    for number in range(rng.integers(2, 7)):
        wanted = rng.permutation(len(CHOICES))[: rng.integers(1, 4)]
        made.append(cube(f"c{number}", *(rng.choice(CHOICES[k]) for k in wanted)))
    return made


def require_running_intersection(blocks: tuple[Block, ...]) -> None:
    for number, block in enumerate(blocks):
        before = [one for one in blocks[:number] if one.cubes[0].unit == block.cubes[0].unit]
        if block.parent is None:
            assert not before
            continue
        assert block.parent < number
        shared = _items(block.axes) & frozenset().union(*(_items(one.axes) for one in before))
        assert shared <= _items(blocks[block.parent].axes)


@pytest.mark.parametrize("seed", range(60))
def test_every_block_shares_only_what_its_parent_has(seed: int) -> None:
    cubes = random_cubes(seed)
    blocks = arranged(cubes, TREES)
    assert sorted(one.id for block in blocks for one in block.cubes) == sorted(one.id for one in cubes)
    require_running_intersection(blocks)
    for block in blocks:
        codes = {axis.variable: set(axis.codes) for axis in block.axes}
        assert all(set(axis.codes) <= codes[axis.variable] for one in block.cubes for axis in one.axes)


def test_cubes_along_a_tree_stay_apart_and_a_circle_is_joined() -> None:
    tree = [cube("a", "GEO.L", "SEX", "AGE.H"), cube("b", "GEO.L", "SEX", "WORK"), cube("c", "GEO.H", "SEX")]
    assert [len(block.cubes) for block in arranged(tree, TREES)] == [1, 1, 1]
    circle = [cube("a", "SEX", "WORK"), cube("b", "WORK", "EDU"), cube("c", "SEX", "EDU")]
    joined, last = arranged(circle, TREES)  # the last is contained in the two others, joined
    assert joined.shape == (5, 3, 4)
    assert (len(joined.cubes), last.parent) == (2, 0)
    other_unit = [*circle, cube("d", "SEX", unit="households")]
    assert [block.parent for block in arranged(other_unit, TREES)] == [None, 0, None]


def test_two_cuts_of_one_variable_are_refined() -> None:
    circle = [cube("a", "AGE.X", "SEX"), cube("b", "AGE.Y", "WORK"), cube("c", "SEX", "WORK", "AGE.L")]
    blocks = arranged(circle, TREES)
    ages = {axis.codes for block in blocks for axis in block.axes if axis.variable == "AGE"}
    assert any({"1.1", "2.1"} <= set(codes) and "3.1" not in codes for codes in ages) or len(blocks) > 1
    joined = arranged([cube("a", "AGE.X", "SEX"), cube("b", "AGE.Y", "SEX")], TREES)
    assert len(joined) == 2  # they share AGE.L x SEX, which either has


def test_a_circle_that_is_too_large_is_refused_with_the_cubes_and_a_remedy() -> None:
    circle = [cube("a", "SEX", "WORK"), cube("b", "WORK", "EDU"), cube("c", "SEX", "EDU")]
    with pytest.raises(Mistakes, match=r"cubes a, b, c share margins in a circle.*more than 20") as refused:
        arranged(circle, TREES, most=20)
    assert "fewer or coarser cubes" in str(refused.value)


def test_margins_in_a_circle_may_belong_to_no_table() -> None:
    """A = B, B = C and A other than C agree in pairs; none of the tables of two people has these margins."""
    same, other = np.eye(2, dtype=int), 1 - np.eye(2, dtype=int)
    tables = (np.bincount(cells, minlength=8).reshape(2, 2, 2) for cells in product(range(8), repeat=2))
    assert not any(
        np.array_equal(t.sum(axis=2), same)
        and np.array_equal(t.sum(axis=0), same)
        and np.array_equal(t.sum(axis=1), other)
        for t in tables
    )
    for one, another in combinations((same, other), 2):
        assert np.array_equal(one.sum(axis=0), another.sum(axis=0))
        assert np.array_equal(one.sum(axis=1), another.sum(axis=1))


def test_axes_are_known() -> None:
    assert set(AXES) == {axis for choice in CHOICES for axis in choice}
