"""Which table of a universe stands for each cross-tabulation, so that measures count every cell once.

It owns that choice and the numbering of a cube's cross-tabulations; it neither counts nor judges cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.audit.published import PublishedTable, Universe
from discreet.maths.disclosure import Grid
from discreet.schema.crosstab import Levels
from discreet.schema.cube import Cube


@dataclass(frozen=True, eq=False)
class OwnedTable:
    """A table, and which of its cross-tabulations it stands for; they are numbered by depth, last axis fastest."""

    universe: Universe
    table: PublishedTable
    owned: NDArray[np.bool_]

    @property
    def cube(self) -> Cube:
        """Its cube."""
        return self.table.cube

    @cached_property
    def depths(self) -> tuple[tuple[int, ...], ...]:
        """Cross-tabulation -> depth along each axis."""
        return tuple(depths_of(self.cube))

    def levels(self, crosstab: int) -> Levels:
        """What a cross-tabulation crosses."""
        return levels_of(self.cube, self.depths[crosstab])

    def size(self, crosstab: int) -> int:
        """How many cells the cube has for a cross-tabulation."""
        return _size(self._sizes, self.depths[crosstab])

    @cached_property
    def _sizes(self) -> list[NDArray[np.int64]]:
        return _sizes(self.cube)

    @cached_property
    def grid(self) -> Grid:
        """The cube as the kernels need it."""
        parents = tuple(axis.parents for axis in self.cube.axes)
        return Grid(self.cube.strides, parents, self.owned)


def depths_of(cube: Cube) -> Iterable[tuple[int, ...]]:
    """The depths along the axes of each cross-tabulation of a cube."""
    return product(*(range(int(axis.depths.max()) + 1) for axis in cube.axes))


def levels_of(cube: Cube, depths: tuple[int, ...]) -> Levels:
    """The levels that are crossed at these depths."""
    return tuple(sorted((axis.variable, d) for axis, d in zip(cube.axes, depths, strict=True) if d))


def _sizes(cube: Cube) -> list[NDArray[np.int64]]:
    """The number of codes along each axis at each depth."""
    return [np.bincount(axis.depths) for axis in cube.axes]


def _size(sizes: list[NDArray[np.int64]], depths: tuple[int, ...]) -> int:
    return prod(int(size[d]) for size, d in zip(sizes, depths, strict=True))


def once(universe: Universe) -> tuple[OwnedTable, ...]:
    """Give every cross-tabulation to the table that has most of its cells, the first of several."""
    best: dict[Levels, tuple[int, int]] = {}  # levels -> cells, table
    for number, table in enumerate(universe.tables):
        sizes = _sizes(table.cube)
        for depths in depths_of(table.cube):
            cells, levels = _size(sizes, depths), levels_of(table.cube, depths)
            if cells > best.get(levels, (-1, 0))[0]:
                best[levels] = cells, number
    return tuple(
        OwnedTable(
            universe,
            table,
            np.array(
                [best[levels_of(table.cube, d)][1] == number for d in depths_of(table.cube)], dtype=np.bool_
            ),
        )
        for number, table in enumerate(universe.tables)
    )


Way = tuple[str, str | int]  # what figures are added up by, and which of those


def ways(owned: OwnedTable, levels: Levels, areas: tuple[str, ...]) -> Iterator[Way]:
    """Everything that a cross-tabulation's figures are added to."""
    yield "total", ""
    yield "universes", owned.universe.counted
    yield "cubes", owned.table.id
    yield "axes", len(levels)
    for variable, depth in levels:
        if variable in areas:
            yield "levels", f"{variable}:{depth}"
