"""From noisy tables to tables that add up: every cell has one value in all of them, a whole number >= 0.

Only noisy values are used, so that it costs no privacy. Each block is fitted to all noisy values of its cubes (see
maths.consistent) and to the margin that its parent has settled; the cells of a cube are sums of its block's cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.hierarchy.blocks import Block
from discreet.io.progress import Progress, Quiet
from discreet.maths.consistent import Lattice, Settled, consistent_cells, lattice
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube, signatures
from discreet.tabulate.tables import NoisyTable, ProtectedTable, added_up

Integers = NDArray[np.int64]


def tables_that_add_up(
    blocks: Sequence[Block], noisy: Mapping[str, NoisyTable], progress: Progress | None = None
) -> Iterator[ProtectedTable]:
    """The tables of all cubes, block by block; ``noisy`` holds the noisy table of each cube by its id."""
    seen = progress or Quiet()
    supports = _supports(blocks, noisy)
    settled: list[Integers] = []  # block -> its finest cells' counts, parallel to its support
    for number, block in enumerate(blocks):
        fitted = _fitted(blocks, number, supports, settled, noisy)
        settled.append(fitted)
        for cube in block.cubes:
            yield _table(cube, block, supports[number], fitted)
            seen.step()


def _fitted(
    blocks: Sequence[Block],
    number: int,
    supports: Sequence[Integers],
    settled: Sequence[Integers],
    noisy: Mapping[str, NoisyTable],
) -> Integers:
    block, support = blocks[number], supports[number]
    if not len(support):
        return np.zeros(0, dtype=np.int64)
    cells = lattice([axis.parents for axis in block.axes], support)
    y, w = measurements(block, cells, noisy)
    if block.parent is None:
        return consistent_cells(cells, y, w)
    parent = blocks[block.parent]
    shared = Shared.of(block, parent)
    names, group = np.unique(shared.numbers(block, support), return_inverse=True)
    above = shared.numbers(parent, supports[block.parent])
    sums = np.zeros(len(names), dtype=np.int64)
    np.add.at(
        sums, np.searchsorted(names, above), settled[block.parent]
    )  # supports agree on the shared margin
    return consistent_cells(cells, y, w, Settled(group.reshape(-1).astype(np.int64), sums))


@dataclass(frozen=True, eq=False)
class Shared:
    """The margin that two blocks share: for each common variable, the codes that both have."""

    codes: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, one: Block, other: Block) -> Shared:
        """What two blocks share."""
        found = {axis.variable: set(axis.codes) for axis in other.axes}
        return cls(
            {
                axis.variable: tuple(sorted(found[axis.variable] & set(axis.codes)))
                for axis in one.axes
                if axis.variable in found
            }
        )

    def numbers(self, block: Block, cells: Integers) -> Integers:
        """The cell of the shared margin that each cell of a block lies in."""
        number = np.zeros(len(cells), dtype=np.int64)
        for k, axis in enumerate(block.axes):
            if axis.variable in self.codes:
                codes = self.codes[axis.variable]
                number = number * len(codes) + _lowest(axis, codes)[_nodes(block.shape, cells, k)]
        return number


def _lowest(axis: Breakdown, codes: Sequence[str]) -> Integers:
    """Node -> the place among the codes of the lowest one that contains it."""
    place = {code: index for index, code in enumerate(codes)}
    found = np.empty(len(axis), dtype=np.int64)
    for node, code in enumerate(axis.codes):
        found[node] = place[code] if code in place else found[axis.parents[node]]
    return found


def _nodes(shape: Sequence[int], cells: Integers, axis: int) -> Integers:
    return (cells // prod(shape[axis + 1 :])) % shape[axis]


def _supports(blocks: Sequence[Block], noisy: Mapping[str, NoisyTable]) -> list[Integers]:
    """The finest cells of each block that may be positive.

    A cell of a shared margin that one block cannot fill is empty in both: first from the leaves of the tree to its
    roots, then back.
    """
    supports = [_support(block, [noisy[cube.id] for cube in block.cubes]) for block in blocks]
    for number in reversed(range(len(blocks))):
        above = blocks[number].parent
        if above is not None:
            supports[above] = _within(blocks, supports, above, number)
    for number, block in enumerate(blocks):
        if block.parent is not None:
            supports[number] = _within(blocks, supports, number, block.parent)
    return supports


def _within(blocks: Sequence[Block], supports: Sequence[Integers], one: int, other: int) -> Integers:
    """The cells of a block that lie in a cell of the shared margin that another block can fill."""
    # the order of variables is the same in both blocks, so that equal numbers are equal cells
    shared = Shared.of(blocks[one], blocks[other])
    mine = shared.numbers(blocks[one], supports[one])
    return supports[one][np.isin(mine, shared.numbers(blocks[other], supports[other]))]


def _support(block: Block, tables: Sequence[NoisyTable]) -> Integers:
    """Finest cells of a block that are finest cells of all its cubes, or lie in one, with noise or a count."""
    if len(tables) == 1:  # its axes are the block's, in another order
        return np.sort(_placed(tables[0].cube, block, _finest_of(tables[0])))
    cells = finest_cells(block)
    for table in tables:
        cells = cells[np.isin(projected(table.cube, block, cells), _finest_of(table))]
    return cells


def finest_cells(block: Block) -> Integers:
    """All finest cells of a block, ascending."""
    finest = [np.flatnonzero(axis.finest) for axis in block.axes]
    return reduce(
        lambda made, k: (made[:, None] + finest[k][None, :] * prod(block.shape[k + 1 :])).reshape(-1),
        range(len(finest)),
        np.zeros(1, dtype=np.int64),
    )


def _placed(cube: Cube, block: Block, cells: Integers) -> Integers:
    """The positions in a block of the cells of its only cube."""
    place = {axis.variable: k for k, axis in enumerate(cube.axes)}
    position = np.zeros(len(cells), dtype=np.int64)
    for axis in block.axes:
        position = position * len(axis) + cube.nodes(cells, place[axis.variable])
    return position


def _finest_of(table: NoisyTable) -> Integers:
    finest = np.ones(len(table.cells), dtype=bool)
    for k, axis in enumerate(table.cube.axes):
        finest &= axis.finest[table.cube.nodes(table.cells, k)]
    return table.cells[finest]


def projected(cube: Cube, block: Block, cells: Integers) -> Integers:
    """The finest cell of a cube that contains each finest cell of its block."""
    place = {axis.variable: k for k, axis in enumerate(block.axes)}
    position = np.zeros(len(cells), dtype=np.int64)
    for axis, stride in zip(cube.axes, cube.strides, strict=True):
        k = place[axis.variable]
        position += _lowest(block.axes[k], axis.codes)[_nodes(block.shape, cells, k)] * stride
    return position


def measurements(
    block: Block, cells: Lattice, noisy: Mapping[str, NoisyTable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The noisy value and weight of each cell of a block: 1/variance, 0 where no cube has the cell.

    Cubes of other blocks count, too: one that is fitted later may be the only one that measures a margin.
    """
    counted = signatures([block.cubes[0]])[0]
    y, w = np.zeros(len(cells)), np.zeros(len(cells))
    for table in noisy.values():
        if signatures([table.cube])[0] != counted:
            continue
        here, position, depth = _measured(table.cube, block, cells)
        where = np.searchsorted(table.cells, position)
        where = np.minimum(where, max(len(table.cells) - 1, 0))
        listed = table.cells[where] == position if len(table.cells) else np.zeros(len(position), dtype=bool)
        y[here] = np.where(listed, table.values[where] if len(table.cells) else 0, 0)
        w[here] = 1 / table.variances.reshape(-1)[depth]
    return y, w


def _measured(cube: Cube, block: Block, cells: Lattice) -> tuple[Integers, Integers, Integers]:
    """The cells of a block that a cube has, their positions in the cube, and their depths as one number."""
    axes = {axis.variable: (axis, stride) for axis, stride in zip(cube.axes, cube.strides, strict=True)}
    here = np.ones(len(cells), dtype=bool)
    position = np.zeros(len(cells), dtype=np.int64)
    for k, mine in enumerate(block.axes):
        nodes = cells.nodes[k]
        if mine.variable not in axes:
            here &= nodes == 0
            continue
        axis, stride = axes[mine.variable]
        node_of = np.array([axis.position.get(code, -1) for code in mine.codes], dtype=np.int64)
        here &= node_of[nodes] >= 0
        position += node_of[nodes] * stride
    depth = np.zeros(int(here.sum()), dtype=np.int64)
    kept = position[here]
    for k, axis in enumerate(cube.axes):
        depth = depth * (int(axis.depths.max()) + 1) + axis.depths[cube.nodes(kept, k)]
    return np.flatnonzero(here), kept, depth


def _table(cube: Cube, block: Block, support: Integers, counts: Integers) -> ProtectedTable:
    """Sum a block's cells to the finest cells of a cube, then to all its margins."""
    kept = counts > 0
    finest, where = np.unique(projected(cube, block, support[kept]), return_inverse=True)
    values = np.zeros(len(finest))
    np.add.at(values, where.reshape(-1), counts[kept])
    cells = lattice([axis.parents for axis in cube.axes], finest)
    every = np.rint(cells.sums(values)).astype(np.int64)
    order = np.argsort(cells.positions)
    return added_up(cube, cells.positions[order], every[order])
