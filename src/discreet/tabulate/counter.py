"""Counting many cubes of one unit in one pass over its blocks; margins are rolled up, never recounted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from discreet.maths import counting
from discreet.population.block import Block
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.schema.expression import Filter
from discreet.tabulate.grids import DENSE_CELLS, AxisRows, DenseGrid, Nodes, SparseGrid, grid_for
from discreet.tabulate.table import ConfidentialTable

_NARROW = 256

Sums = NDArray[np.uint64]


class CubeCounter:
    """The accumulators of some cubes of one unit; blocks are added in any order, each on any number of threads."""

    def __init__(self, cubes: Sequence[Cube], pool: Executor) -> None:
        self._cubes, self._pool = cubes, pool
        axes = {axis.full_name: axis for cube in cubes for axis in cube.axes if len(axis) > 1}
        self._narrow = [axis for axis in axes.values() if len(axis) <= _NARROW]
        self._wide = [axis for axis in axes.values() if len(axis) > _NARROW]
        narrow = {axis.full_name: row for row, axis in enumerate(self._narrow)}
        wide = {axis.full_name: row for row, axis in enumerate(self._wide)}
        rows = [AxisRows(cube, narrow, wide) for cube in cubes]
        self._grids = [grid_for(cube, row) for cube, row in zip(cubes, rows, strict=True)]
        self._weights = [
            grid_for(cube, row) if cube.weight else None for cube, row in zip(cubes, rows, strict=True)
        ]
        self._room = Nodes(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.uint32))

    def add(self, block: Block) -> None:
        """Count one block into every cube; each cube is one task, so that no two threads share a cell."""
        nodes = self._nodes(block)
        added = {_who(cube): None for cube in self._cubes}
        values = dict(zip(added, self._pool.map(lambda who: _added(block, *who), added), strict=True))

        def count(k: int) -> None:
            cube, value = self._cubes[k], values[_who(self._cubes[k])]
            self._grids[k].add(nodes, value)
            weights = self._weights[k]
            if weights is not None and cube.weight:
                weights.add(nodes, np.where(value != 0, block.weights[cube.weight], np.uint64(0)))

        for _ in self._pool.map(count, range(len(self._cubes))):
            pass

    def _nodes(self, block: Block) -> Nodes:
        nodes = self._room_for(len(block))

        def fill(task: tuple[Breakdown, NDArray[np.uint8] | NDArray[np.uint32]]) -> None:
            axis, out = task
            codes = block.codes[axis.variable]
            if axis.is_flat:
                # a sum vectorises, a table does not; in the wider type, for the last code would overflow its own
                np.add(codes, 1, out=out, dtype=out.dtype, casting="unsafe")
            else:
                counting.recode(codes, axis.node_of_leaf.astype(out.dtype), out)

        tasks = [*zip(self._narrow, nodes.narrow, strict=True), *zip(self._wide, nodes.wide, strict=True)]
        for _ in self._pool.map(fill, tasks):
            pass
        return nodes

    def _room_for(self, records: int) -> Nodes:
        """The same memory for every block: fresh pages would cost more than filling them."""
        narrow, wide = len(self._narrow) * records, len(self._wide) * records
        if narrow > len(self._room.narrow) or wide > len(self._room.wide):
            self._room = Nodes(np.empty(narrow, dtype=np.uint8), np.empty(wide, dtype=np.uint32))
        return Nodes(
            self._room.narrow[:narrow].reshape(len(self._narrow), records),
            self._room.wide[:wide].reshape(len(self._wide), records),
        )

    def table(self, k: int) -> ConfidentialTable:
        """Roll up the k-th cube and hand its table over; its accumulators are then gone."""
        positions, cells = self._grids[k].rolled_up()
        weights = self._weights[k]
        sums = None if weights is None else _beside(positions, weights)
        return ConfidentialTable(self._cubes[k], cells, positions, sums)


def counted(cube: Cube, grid: DenseGrid | SparseGrid) -> ConfidentialTable:
    """Roll up the grid of a cube that was counted elsewhere than in a pass over blocks."""
    positions, cells = grid.rolled_up()
    return ConfidentialTable(cube, cells, positions)


def _who(cube: Cube) -> tuple[Filter | None, str | None]:
    return cube.base, cube.count


def _added(block: Block, base: Filter | None, count: str | None) -> Sums:
    """What each record adds: nothing where it is outside the base or not flagged."""
    added = counting.increments(block.keys)
    if base is not None:
        added[~base.mask(block.codes)] = 0
    if count is not None:
        added[~block.flags[count]] = 0
    return added


def _beside(positions: NDArray[np.int64] | None, weights: DenseGrid | SparseGrid) -> Sums:
    """The sums of weights of the same cells; a cell whose weights are all zero has none of its own."""
    where, sums = weights.rolled_up()
    if positions is None or where is None:
        return sums
    aligned = np.zeros(len(positions), dtype=np.uint64)
    aligned[np.searchsorted(positions, where)] = sums
    return aligned


def groups(cubes: Iterable[Cube], cells: int) -> Iterator[tuple[Cube, ...]]:
    """Split cubes into runs whose dense accumulators fit together into so many cells."""
    group: list[Cube] = []
    held = 0
    for cube in cubes:
        size = min(cube.size, DENSE_CELLS) * (2 if cube.weight else 1)
        if group and held + size > cells:
            yield tuple(group)
            group, held = [], 0
        group.append(cube)
        held += size
    if group:
        yield tuple(group)
