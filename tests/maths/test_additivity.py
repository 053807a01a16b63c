import math

import numpy as np
import pytest

from discreet.maths.additivity import TILE, CellNoise, DenseCells, Gaps, PartsAlong, dense_gaps, gaps
from discreet.maths.attacks.disclosure import CubeGrid
from discreet.maths.attacks.intervals import families
from discreet.maths.attacks.tuples import Choice
from discreet.maths.cells.alignment import Integers, wider_cells

PARENTS = np.array([-1, 0, 1, 1, 0], dtype=np.int32)  # a total of A (with A1 and A2) and B
CHILDREN = np.array([2, 2, 0, 0, 0])
CROSSTAB = np.array([0, 1, 2, 2, 1], dtype=np.int32)  # by depth


def found_of(
    published: list[int], true: list[int], owned: list[bool], same_noise: bool = False, listed: int = 5
) -> Gaps:
    cells = np.arange(listed)
    kinds = np.zeros(listed, dtype=np.int32)
    noise = CellNoise(np.array([[0.5, 2.0]]), kinds, np.tile([0.25, 1.0], (3, 1)), same_noise)
    along = PartsAlong(
        stride=1,
        children=CHILDREN,
        wider=wider_cells(cells, 1, PARENTS),
        deeper=1,
        totals=np.ones(3, dtype=bool),
        own=np.array(owned),
    )
    return gaps(cells, np.array(published), np.array(true), noise, CROSSTAB[cells], along)


def test_totals_are_compared_with_their_parts() -> None:
    found = found_of([10, 4, 3, 3, 5], [9, 5, 3, 2, 4], [False, True, True])
    # 10 against 4 + 5, and 4 against 3 + 3
    assert found.sums[1].tolist() == [1, 1, 1, 1, 2 + 4 + (0.5 - 1) ** 2]
    assert found.sums[2].tolist() == [1, 1, 2, 4, 2 + 4 + (0.5 - 1) ** 2]
    assert found.largest.tolist() == [0, 1, 2]


def test_a_part_that_is_not_listed_has_the_noise_of_an_empty_cell() -> None:
    found = found_of([10, 4, 3, 3], [9, 5, 3, 2], [True] * 3, listed=4)
    assert found.sums[1, Gaps.SIZE] == 6
    assert found.sums[1, Gaps.EXPECTED] == 2 + 2 + 1 + (0.5 - 0.5 - 0.25) ** 2


def test_what_another_table_stands_for_and_empty_totals_are_left_out() -> None:
    found = found_of([10, 4, 3, 3, 5], [9, 5, 3, 2, 4], [True, False, True])
    assert found.sums[1].tolist() == [0] * 5
    assert not found_of([1, 1, 0, 1, 0], [0] * 5, [True] * 3).sums.any()


def test_one_part_with_everybody_is_expected_to_have_the_noise_of_the_total() -> None:
    found = found_of([7, 7, 7, 0, 0], [6, 6, 6, 0, 0], [True] * 3, same_noise=True)
    assert found.sums[:, Gaps.TOTALS].tolist() == [0, 1, 1]
    assert found.sums[:, Gaps.EXPECTED].tolist() == [0, 0, 0]
    assert found.sums[:, Gaps.OPEN].tolist() == [0, 0, 0]


CUBE = (PARENTS, np.array([-1, 0, 0], dtype=np.int32), np.array([-1, 0, 1, 1], dtype=np.int32))
GRID = CubeGrid((12, 4, 1), CUBE, np.ones(18, dtype=bool))


@pytest.mark.parametrize("same_noise", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_table_that_is_laid_out_whole_has_the_same_gaps(seed: int, same_noise: bool) -> None:
    generator = np.random.default_rng(seed)
    cells = np.flatnonzero(generator.random(60) < 0.6)
    true = generator.integers(0, 4, len(cells))
    published = np.maximum(true + generator.integers(-1, 2, len(cells)), 0)
    crosstab = GRID.crosstabs(cells)
    nothing, moments = np.zeros((18, 2)), generator.random((4, 2))
    noise = CellNoise(moments, true.astype(np.int32), nothing, same_noise)
    totals, own = generator.random((2, 18)) < 0.7
    table = DenseCells.of(np.full((4, 60), np.nan), cells, published, true, noise)
    for k, parents in enumerate(CUBE):
        children = np.bincount(parents[1:], minlength=len(parents))
        wider = wider_cells(cells, GRID.strides[k], parents)
        along = PartsAlong(GRID.strides[k], children, wider, GRID.radices[k], totals, own)
        sparse = gaps(cells, published, true, noise, crosstab, along)
        levels = [int(depths.max()) + 1 for depths in GRID.depths]
        shape = (math.prod(levels[:k]), levels[k], math.prod(levels[k + 1 :]))
        fresh = np.zeros(shape, dtype=bool)
        fresh[:, :-1] = totals.reshape(shape)[:, :-1] & own.reshape(shape)[:, 1:]
        below = families(parents)
        depths = GRID.depths[k][below.parents]
        choice = Choice(depths, classes(range(k), levels), classes(range(k + 1, 3), levels), fresh)
        before, after = (math.prod(map(len, some)) for some in (CUBE[:k], CUBE[k + 1 :]))
        dense = dense_gaps(table, (before, len(parents), after), below, choice, same_noise)
        assert dense.sums[0] == pytest.approx(sparse.sums.sum(axis=0))
        assert dense.largest[0] == sparse.largest.max()
        assert sparse.sums[:, Gaps.TOTALS].sum() > 0


def classes(axes: range, levels: list[int]) -> Integers:
    found = np.zeros(1, dtype=np.int64)
    for k in axes:
        found = (found[:, None] * levels[k] + GRID.depths[k]).ravel()
    return found


def test_long_lines_are_added_up_in_tiles() -> None:
    generator = np.random.default_rng(1)
    inner = 2 * TILE + 7
    values = generator.integers(1, 9, (1, 3, inner))
    cells, kinds = np.arange(3 * inner), np.zeros(3 * inner, dtype=np.int32)
    noise = CellNoise(np.array([[0.0, 2.0]]), kinds, np.zeros((2, 2)), False)
    table = DenseCells.of(np.empty((4, 3 * inner)), cells, values.ravel(), values.ravel(), noise)
    nothing = np.zeros(1, dtype=np.int64)
    choice = Choice(nothing, nothing, np.zeros(inner, dtype=np.int64), np.array([[[True], [False]]]))
    found = dense_gaps(table, (1, 3, inner), families(np.array([-1, 0, 0], dtype=np.int32)), choice, False)
    wrong = np.abs(values[0, 0] - values[0, 1] - values[0, 2])
    assert found.sums[0].tolist() == [inner, (wrong > 0).sum(), wrong.sum(), (wrong**2).sum(), 6 * inner]
    assert found.largest[0] == wrong.max()
