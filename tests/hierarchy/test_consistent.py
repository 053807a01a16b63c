"""Tables that add up over several cubes: one value per cell in all of them, sums along all axes and levels."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.hierarchy.blocks import arranged
from discreet.hierarchy.consistent import tables_that_add_up
from discreet.programme.cube import Cube
from discreet.tabulate.tables import ProtectedTable
from tests.cases import few
from tests.hierarchy.test_blocks import random_cubes
from tests.hierarchy.trees import TREES, cube, is_impossible, noisy, population, true_cells

STAR = [
    cube("geo-age", "AGE.H", "GEO.H", "SEX"),
    cube("geo-work", "GEO.M", "SEX", "WORK", "AGE.L"),
    cube("edu", "GEO.L", "SEX", "EDU"),
    cube("margin", "SEX", "AGE.L"),
]
CIRCLE = [cube("a", "SEX", "WORK", "AGE.L"), cube("b", "WORK", "EDU"), cube("c", "SEX", "EDU", "GEO.L")]


def made(cubes: list[Cube], seed: int, keep_zeros: bool) -> dict[str, ProtectedTable]:
    people = population(seed)
    noise = {one.id: noisy(one, people, seed, keep_zeros) for one in cubes}
    return {table.cube.id: table for table in tables_that_add_up(arranged(cubes, TREES), noise)}


def grid(table: ProtectedTable) -> NDArray[np.int64]:
    values = np.zeros(table.cube.size, dtype=np.int64)
    values[table.cells] = table.values
    return values.reshape(table.cube.shape)


def require_sums(table: ProtectedTable) -> None:
    """Every node of every axis that has children is their sum, whatever the other axes are at."""
    values = grid(table)
    for k, axis in enumerate(table.cube.axes):
        along = np.moveaxis(values, k, 0)
        for node in range(len(axis)):
            children = np.flatnonzero(axis.parents == node)
            if len(children):
                assert np.array_equal(along[node], along[children].sum(axis=0))


def described(table: ProtectedTable) -> dict[str, int]:
    return {
        repr(sorted(table.cube.codes_of(int(cell)).items())): int(value)
        for cell, value in zip(table.cells, table.values, strict=True)
    }


def every_cell(one: Cube) -> set[str]:
    return {repr(sorted(one.codes_of(cell).items())) for cell in range(one.size)}


def require_one_value(tables: dict[str, ProtectedTable]) -> int:
    """Compare all pairs of cubes; return how many cells they share."""
    compared = 0
    for one, other in combinations(tables.values(), 2):
        mine, its = described(one), described(other)
        shared = every_cell(one.cube) & every_cell(other.cube)
        compared += len(shared)
        assert {cell: mine.get(cell, 0) for cell in shared} == {cell: its.get(cell, 0) for cell in shared}
    return compared


@pytest.mark.parametrize("keep_zeros", [False, True])
@pytest.mark.parametrize("cubes", [STAR, CIRCLE], ids=["star", "circle"])
def test_every_cell_has_one_value_and_all_sums_hold(cubes: list[Cube], keep_zeros: bool) -> None:
    tables = made(cubes, 1, keep_zeros)
    assert set(tables) == {one.id for one in cubes}
    for table in tables.values():
        assert (table.values > 0).all()
        assert (np.diff(table.cells) > 0).all()
        require_sums(table)
    assert require_one_value(tables) > 10


@pytest.mark.parametrize("keep_zeros", [False, True])
@pytest.mark.parametrize("seed", few(range(25), *range(0, 25, 5)))
def test_the_same_of_random_cubes(seed: int, keep_zeros: bool) -> None:
    tables = made(random_cubes(seed), seed, keep_zeros)
    for table in tables.values():
        require_sums(table)
    require_one_value(tables)


@pytest.mark.parametrize("seed", few(range(5), 0, 1))
def test_impossible_cells_and_kept_zeros_stay_zero(seed: int) -> None:
    for table in made([*STAR, *CIRCLE], seed, keep_zeros=False).values():
        assert not is_impossible(table.cube, table.cells).any()
    people = population(seed)
    for table in made(STAR, seed, keep_zeros=True).values():
        assert (true_cells(table.cube, people)[table.cells] > 0).all()


@pytest.mark.parametrize("cubes", few([STAR, CIRCLE], 1), ids=["star", "circle"])
def test_errors_over_several_cubes_are_smaller_than_those_of_the_noise(cubes: list[Cube]) -> None:
    """Mean squared errors of all cells of each cube, before (negatives as zero) and after."""
    before, after = (
        dict.fromkeys((one.id for one in cubes), 0.0),
        dict.fromkeys((one.id for one in cubes), 0.0),
    )
    for seed in range(12):
        people, tables = population(seed), made(cubes, seed, keep_zeros=False)
        for one in cubes:
            truth, table = true_cells(one, people), noisy(one, people, seed, keep_zeros=False)
            raw = np.zeros(one.size, dtype=np.int64)
            raw[table.cells] = np.maximum(table.values, 0)
            before[one.id] += float(((raw - truth) ** 2).mean())
            after[one.id] += float(((grid(tables[one.id]).reshape(-1) - truth) ** 2).mean())
    for one in cubes:
        assert after[one.id] < 0.95 * before[one.id], (one.id, before, after)


def test_a_population_of_nobody_is_published_as_nothing() -> None:
    people = {name: leaves[:0] for name, leaves in population(1).items()}
    noise = {one.id: noisy(one, people, 1, keep_zeros=True) for one in STAR}
    assert all(len(table) == 0 for table in tables_that_add_up(arranged(STAR, TREES), noise))
