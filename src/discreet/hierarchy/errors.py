"""Errors before and after counts are adjusted to add up, from simulated noise: no data are needed.

The fit is linear as long as nothing is negative and nothing is rounded, so that its errors do not depend on the true
counts: noise of the variance of each cross-tabulation is drawn and fitted. The bound at zero makes the errors of
sparse tables smaller, whole numbers make all errors a little larger (see docs/explanation/consistency.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.hierarchy.blocks import Block
from discreet.hierarchy.consistent import (
    Shared,
    finest_cells,
    measurements,
    projected,
)
from discreet.maths.consistent import Settled, lattice, least_squares
from discreet.programme.cube import Cube
from discreet.tabulate.tables import NoisyTable

SEED = 2018
MOST_DRAWS = 60
LEAST_DRAWS = 4
CELLS_DRAWN = 3_000_000  # of all draws together, as far as the least number allows
FINE = 1000.0  # noise is drawn in thousandths, so that wide and narrow noise are both drawn well

Variances = NDArray[np.float64]  # by the depth along each axis


@dataclass(frozen=True)
class AdjustedError:
    """The standard deviation of the cells of a cube with this many axes, before and after counts are adjusted."""

    cube: str
    axes: int  # 0 is the grand total
    cells: int
    before: float
    after: float  # not yet whole, and not bounded at zero
    draws: (
        int  # of simulated noise: the error of few cells is known to about 1 / sqrt(2 cells draws) of itself
    )


def adjusted_errors(blocks: Sequence[Block], variances: Mapping[str, Variances]) -> tuple[AdjustedError, ...]:
    """The errors of every cube by number of axes; ``variances`` holds those of its cross-tabulations."""
    cubes = [cube for block in blocks for cube in block.cubes]
    cells = sum(prod(block.shape) for block in blocks)
    draws = max(LEAST_DRAWS, min(MOST_DRAWS, CELLS_DRAWN // max(cells, 1)))
    rng = np.random.default_rng(SEED)
    squares: dict[str, NDArray[np.float64]] = {cube.id: np.zeros(cube.size) for cube in cubes}
    for _ in range(draws):
        noisy = {cube.id: _drawn(cube, variances[cube.id], rng) for cube in cubes}
        for cube, error in _fitted(blocks, noisy):
            squares[cube.id] += error**2 / draws
    found = [
        error
        for cube in cubes
        for error in _by_axes(cube, variances[cube.id], squares[cube.id] / FINE**2, draws)
    ]
    return tuple(found)


def _drawn(cube: Cube, variances: Variances, rng: np.random.Generator) -> NoisyTable:
    cells = np.arange(cube.size, dtype=np.int64)
    noise = rng.normal(0, np.sqrt(variances.reshape(-1)[_depths(cube, cells)]))
    return NoisyTable(cube, cells, np.rint(FINE * noise).astype(np.int64), variances)


def _fitted(
    blocks: Sequence[Block], noisy: Mapping[str, NoisyTable]
) -> list[tuple[Cube, NDArray[np.float64]]]:
    """The errors of all cells of all cubes: what is fitted to noise around zero."""
    found: list[tuple[Cube, NDArray[np.float64]]] = []
    settled: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    for block in blocks:
        support = finest_cells(block)
        cells = lattice([axis.parents for axis in block.axes], support)
        y, w = measurements(block, cells, noisy)
        held = None
        if block.parent is not None:
            parent = blocks[block.parent]
            shared = Shared.of(block, parent)
            names, group = np.unique(shared.numbers(block, support), return_inverse=True)
            above, values = settled[block.parent]
            sums = np.bincount(np.searchsorted(names, shared.numbers(parent, above)), weights=values)
            held = Settled(group.reshape(-1).astype(np.int64), sums)
        x = least_squares(cells, y, w, held)
        settled.append((support, x))
        found.extend((cube, _all_cells(cube, block, support, x)) for cube in block.cubes)
    return found


def _all_cells(
    cube: Cube, block: Block, support: NDArray[np.int64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    finest, where = np.unique(projected(cube, block, support), return_inverse=True)
    cells = lattice([axis.parents for axis in cube.axes], finest)
    every = np.zeros(cube.size)
    summed = np.zeros(len(finest))
    np.add.at(summed, where.reshape(-1), x)
    every[cells.positions] = cells.sums(summed)
    return every


def _depths(cube: Cube, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The depths of cells along all axes as one number, as variances are numbered."""
    depth = np.zeros(len(cells), dtype=np.int64)
    for k, axis in enumerate(cube.axes):
        depth = depth * (int(axis.depths.max()) + 1) + axis.depths[cube.nodes(cells, k)]
    return depth


def _by_axes(
    cube: Cube, variances: Variances, squares: NDArray[np.float64], draws: int
) -> list[AdjustedError]:
    cells = np.arange(cube.size, dtype=np.int64)
    axes = np.zeros(cube.size, dtype=np.int64)
    for k in range(len(cube.axes)):
        axes += cube.nodes(cells, k) > 0
    before = variances.reshape(-1)[_depths(cube, cells)]
    return [
        AdjustedError(
            cube.id,
            number,
            int(here.sum()),
            sqrt(float(before[here].mean())),
            sqrt(float(squares[here].mean())),
            draws,
        )
        for number in range(len(cube.axes) + 1)
        if (here := axes == number).any()
    ]
