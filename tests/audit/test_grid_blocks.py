from __future__ import annotations

import numpy as np

from discreet.audit.bound_propagation import blocks, fresh
from discreet.audit.cells import once
from discreet.audit.evidence import PublishedTable, Universe
from discreet.programme.cube import Cube, crosstabs
from tests.audit.made import axis, flat, nested

GEO, SEX, AGE = nested("GEO", 3, 4), flat("SEX", 2), flat("AGE", 5)
CUBE = Cube("1", "persons", (axis(GEO), axis(SEX)))


def test_a_cube_that_fits_is_one_block() -> None:
    (block,) = blocks(CUBE, 1000)
    assert block.shape == CUBE.shape
    assert [len(one) for one in block.families] == [4, 1]


def test_a_cube_is_cut_into_whole_regions() -> None:
    found = list(blocks(CUBE, 15))
    assert [(one.first, one.last) for one in found] == [(0, 1), (1, 6), (6, 11), (11, 16)]
    assert [len(one.families[0]) for one in found] == [0, 1, 1, 1]
    assert found[2].families[0].children.tolist() == [1, 2, 3, 4]


def test_blocks_hold_every_cell_of_every_cross_tabulation_once() -> None:
    tables = crosstabs(CUBE, {"GEO": GEO, "SEX": SEX})
    cells = [block.cells_of(table) for block in blocks(CUBE, 15) for table in tables]
    assert sorted(np.concatenate(cells).tolist()) == list(range(CUBE.size))


def test_a_dense_block_has_the_listed_values() -> None:
    cells = np.array([0, 20, 44]), np.array([7, 8, 9])
    dense = [block.dense(cells).tolist() for block in blocks(CUBE, 15)]
    assert [sum(one) for one in dense] == [7, 0, 8, 9]
    assert dense[2][2] == 8


def test_a_cube_without_axes_is_one_cell() -> None:
    (block,) = blocks(Cube("0", "persons", ()), 1)
    assert block.dense((np.array([0]), np.array([5]))).tolist() == [5]


def test_tuples_that_an_earlier_table_has_shown_are_not_fresh() -> None:
    cubes = (CUBE, CUBE, Cube("2", "persons", (axis(GEO), axis(SEX), axis(AGE))))
    nothing = np.zeros(0, dtype=np.int64)
    tables = tuple(PublishedTable(cube, lambda: (nothing, nothing)) for cube in cubes)
    found = once(Universe("persons", "", "", tables, {"GEO": GEO, "SEX": SEX, "AGE": AGE}))
    first, again, last = ([fresh(owned, k) for k in range(len(owned.cube.axes))] for owned in found)
    assert all(one[:, :-1].all() and not one[:, -1].any() for one in first)  # leaves are no parents
    assert not any(one.any() for one in again)
    along_geo, along_sex, along_age = last
    assert along_geo[0, 0].tolist() == [False, True, False, True]  # AGE at its total: known
    assert along_sex[:, 0].tolist() == [[False, True]] * 3
    assert along_age[:, 0].all()
