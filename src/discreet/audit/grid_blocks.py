"""Blocks of a published cube as dense grids, small enough to be worked on, and the tuples in them.

It owns how a cube is cut and which of its tuples no table before it has shown; what is done with them is the attack's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.published import Cells, Integers, PublishedTable, Universe
from discreet.maths.intervals import Families, families
from discreet.maths.tuples import Choice
from discreet.schema.codelist import Breakdown
from discreet.schema.crosstab import CrossTab
from discreet.schema.cube import Cube

_TOTAL = -1  # the total is the same of every variable


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


class FreshTuples:
    """Remembers which tuples earlier tables have shown, so that each counts once.

    A parent's children are the same in all breakdowns that divide it. Where two breakdowns of one variable hold
    different nodes of a level, their common tuples count twice.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[object, ...], int] = {}
        self._seen: set[tuple[int, ...]] = set()

    def choose(self, cube: Cube) -> list[NDArray[np.bool_]]:
        """For each axis the new ones: [depths of the axes before, depth of the parent, depths of the axes after]."""
        return [self._fresh(cube, axis) for axis in range(len(cube.axes))]

    def _fresh(self, cube: Cube, axis: int) -> NDArray[np.bool_]:
        names = [self._parents(one) if k == axis else self._levels(one) for k, one in enumerate(cube.axes)]
        fresh = [self._is_new(chosen) for chosen in product(*names)]
        sizes = [len(one) for one in names]
        return np.array(fresh).reshape(prod(sizes[:axis]), sizes[axis], prod(sizes[axis + 1 :]))

    def _is_new(self, names: Sequence[int]) -> bool:
        key = tuple(sorted(name for name in names if name != _TOTAL))
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _parents(self, axis: Breakdown) -> list[int]:
        return [
            self._name("parents", axis, (axis.depths == depth) & ~axis.finest)
            for depth in range(int(axis.depths.max()) + 1)
        ]

    def _levels(self, axis: Breakdown) -> list[int]:
        deeper = [
            self._name("nodes", axis, axis.depths == depth) for depth in range(1, int(axis.depths.max()) + 1)
        ]
        return [_TOTAL, *deeper]

    def _name(self, what: str, axis: Breakdown, marked: NDArray[np.bool_]) -> int:
        codes = tuple(axis.codes[node] for node in np.flatnonzero(marked))
        return self._names.setdefault((what, axis.variable, codes), len(self._names))


def _choice(block: Block, axis: int, fresh: NDArray[np.bool_]) -> Choice:
    """The chosen tuples of a block along an axis."""
    axes = range(len(block.shape))
    depths = block.depths(axis).astype(np.int64)
    return Choice(
        depths[block.families[axis].parents],
        _classes(block, [k for k in axes if k < axis]),
        _classes(block, [k for k in axes if k > axis]),
        fresh,
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
    fresh = FreshTuples()
    for table in universe.tables:
        parts = tuple(blocks(table.cube, most))
        if max(part.size for part in parts) <= most:
            yield CutTable(table, parts, tuple(fresh.choose(table.cube)))
