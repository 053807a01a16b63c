"""Blocks of a published cube as dense grids, small enough to be worked on, and the tuples in them.

It owns how a cube is cut and which of its tuples no table before it has shown; what is done with them is the attack's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.once import OwnedTable, once
from discreet.audit.published import Cells, Integers, PublishedTable, Universe
from discreet.maths.intervals import Families, families
from discreet.maths.tuples import Choice
from discreet.schema.codelist import Breakdown
from discreet.schema.crosstab import CrossTab
from discreet.schema.cube import Cube


@dataclass(frozen=True, eq=False)
class Block:
    """The cells of a cube whose first axis has the nodes first <= node < last: a whole sub-tree, or one node."""

    cube: Cube
    first: int
    last: int

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes along each axis; a cube without axes is one cell."""
        return (self.last - self.first, *self.cube.shape[1:])

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    @property
    def offset(self) -> int:
        """The position of its first cell in the cube."""
        return self.first * (self.cube.size // max(1, len(self.cube.axes[0]))) if self.cube.axes else 0

    @cached_property
    def families(self) -> tuple[Families, ...]:
        """The families along each axis; those that reach beyond the block are left out."""
        return tuple(self._families(k) for k in range(len(self.cube.axes)))

    def _families(self, axis: int) -> Families:
        above = self.cube.axes[axis].parents
        if axis == 0:
            above = np.maximum(above[self.first : self.last] - self.first, -1).astype(np.int32)
        return families(above)

    def depths(self, axis: int) -> NDArray[np.int32]:
        """The depth of each of its nodes along an axis."""
        depths = self.cube.axes[axis].depths
        return depths[self.first : self.last] if axis == 0 else depths

    def dense(self, cells: Cells) -> NDArray[np.int32]:
        """The values of its cells, zero where a table lists none."""
        places, values = cells
        begin, end = np.searchsorted(places, [self.offset, self.offset + self.size])
        grid = np.zeros(self.size, dtype=np.int32)
        grid[places[begin:end] - self.offset] = values[begin:end]
        return grid

    def cells_of(self, crosstab: CrossTab) -> Integers:
        """The cells of the cube in this block that belong to a cross-tabulation."""
        cells = np.zeros(1, dtype=np.int64)
        for k, level in enumerate(crosstab.levels):
            nodes = level.nodes
            if k == 0:
                nodes = nodes[(nodes >= self.first) & (nodes < self.last)]
            cells = (cells[:, None] + nodes[None, :] * self.cube.strides[k]).ravel()
        return cells


def blocks(cube: Cube, most: int) -> Iterator[Block]:
    """Cut a cube along its first axis into the largest sub-trees of at most ``most`` cells, or else single nodes."""
    if not cube.axes:
        yield Block(cube, 0, 1)
        return
    across = cube.size // len(cube.axes[0])
    sizes = _sizes(cube.axes[0])
    node = 0
    while node < len(sizes):
        nodes = sizes[node] if sizes[node] * across <= most else 1
        yield Block(cube, node, node + nodes)
        node += nodes


def _sizes(axis: Breakdown) -> list[int]:
    """How many nodes each node's sub-tree has; in preorder they stand together."""
    sizes = [1] * len(axis)
    for node in range(len(axis) - 1, 0, -1):
        sizes[int(axis.parents[node])] += sizes[node]
    return sizes


def fresh(owned: OwnedTable, axis: int) -> NDArray[np.bool_]:
    """The tuples along an axis whose parts no table before has shown.

    [depths of the axes before, depth of the parent, depths of the axes after]. Where two breakdowns of one variable
    hold different nodes of a level, their common tuples count twice.
    """
    levels = [int(one.depths.max()) + 1 for one in owned.cube.axes]
    parts = owned.owned.reshape(prod(levels[:axis]), levels[axis], prod(levels[axis + 1 :]))
    found = np.zeros_like(parts)
    found[:, :-1] = parts[:, 1:]
    return found


def _choice(block: Block, axis: int, new: NDArray[np.bool_]) -> Choice:
    """The chosen tuples of a block along an axis."""
    axes = range(len(block.shape))
    depths = block.depths(axis).astype(np.int64)
    return Choice(
        depths[block.families[axis].parents],
        _classes(block, [k for k in axes if k < axis]),
        _classes(block, [k for k in axes if k > axis]),
        new,
    )


def _classes(block: Block, axes: Sequence[int]) -> Integers:
    """Position along some axes -> number of its depths."""
    classes = np.zeros(1, dtype=np.int64)
    for k in axes:
        many = int(block.cube.axes[k].depths.max()) + 1
        classes = (classes[:, None] * many + block.depths(k)[None, :]).ravel()
    return classes


@dataclass(frozen=True, eq=False)
class CutTable:
    """A table in blocks that fit, and which of its tuples are new."""

    table: PublishedTable
    blocks: tuple[Block, ...]
    fresh: tuple[NDArray[np.bool_], ...]  # along each axis

    def tuples(self, block: Block) -> Iterator[Tuples]:
        """The tuples of a block along each axis that has any."""
        for axis, members in enumerate(block.families):
            if len(members):
                shape = (prod(block.shape[:axis]), block.shape[axis], prod(block.shape[axis + 1 :]))
                yield Tuples(shape, members, _choice(block, axis, self.fresh[axis]))


@dataclass(frozen=True, eq=False)
class Tuples:
    """The families along one axis of a block, seen as a grid (before, node, after), and the new ones among them."""

    shape: tuple[int, int, int]
    families: Families
    choice: Choice

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What kernels take after the grids."""
        return (*self.families.arrays, *self.choice.arrays)


def cut(universe: Universe, most: int) -> Iterator[CutTable]:
    """The tables of a universe that can be cut into blocks of at most ``most`` cells."""
    cuts = {table: tuple(blocks(table.cube, most)) for table in universe.tables}
    fitting = tuple(table for table, parts in cuts.items() if max(part.size for part in parts) <= most)
    for owned in once(replace(universe, tables=fitting)):
        new = tuple(fresh(owned, axis) for axis in range(len(owned.cube.axes)))
        yield CutTable(owned.table, cuts[owned.table], new)
