"""The accumulators of one cube while it is counted: a dense grid, or sorted positions where that is too large.

It does not decide which records are added (see counter).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.maths import counting, sparse
from discreet.schema.cube import Cube

DENSE_CELLS = 1 << 26  # half a gigabyte of accumulators
_PENDING = 1 << 23  # positions that are gathered before they are added up
_CHUNK = 1 << 20  # records whose positions are worked out at once

Sums = NDArray[np.uint64]
Keys = NDArray[np.uint32]
Mask = NDArray[np.bool_]


class Nodes:
    """The nodes of each record along each axis in use: narrow axes as bytes, wide ones as 32-bit integers."""

    def __init__(self, narrow: NDArray[np.uint8], wide: NDArray[np.uint32]) -> None:
        self.narrow, self.wide = narrow, wide


class Grid(Protocol):
    """Somewhere to add records to."""

    def add(self, nodes: Nodes, added: Sums) -> None:
        """Add each record's value to its finest cell."""

    def add_records(self, nodes: Nodes, keys: Keys, inside: Mask) -> None:
        """Add each record's key and one to its finest cell; only those inside, where ``inside`` is not empty."""

    def rolled_up(self) -> tuple[NDArray[np.int64] | None, Sums]:
        """All cells with margins and sub-totals: positions (None for the whole grid) and sums."""


class AxisRows:
    """Where the axes of a cube stand in ``Nodes``, with their strides."""

    def __init__(self, cube: Cube, narrow: dict[str, int], wide: dict[str, int]) -> None:
        used = [(axis.full_name, cube.strides[k]) for k, axis in enumerate(cube.axes) if len(axis) > 1]
        self.narrow = np.array([narrow[name] for name, _ in used if name in narrow], dtype=np.int64)
        self.narrow_strides = np.array([stride for name, stride in used if name in narrow], dtype=np.uint64)
        self.wide = np.array([wide[name] for name, _ in used if name in wide], dtype=np.int64)
        self.wide_strides = np.array([stride for name, stride in used if name in wide], dtype=np.uint64)


class DenseGrid:
    """One accumulator for every cell of the cube, margins included."""

    def __init__(self, cube: Cube, rows: AxisRows) -> None:
        self._cube, self._rows = cube, rows
        self._strides = rows.narrow_strides.astype(np.uint32), rows.wide_strides.astype(np.uint32)
        self._cells = np.zeros(cube.size, dtype=np.uint64)

    def add(self, nodes: Nodes, added: Sums) -> None:
        """Add each record's value to its finest cell."""
        rows, (narrow, wide) = self._rows, self._strides
        counting.count_cube(
            self._cells, added, nodes.narrow, rows.narrow, narrow, nodes.wide, rows.wide, wide, 0, len(added)
        )

    def add_records(self, nodes: Nodes, keys: Keys, inside: Mask) -> None:
        """Add each record's key and one to its finest cell."""
        rows, (narrow, wide) = self._rows, self._strides
        counting.count_keys(
            self._cells, keys, inside, nodes.narrow, rows.narrow, narrow, nodes.wide, rows.wide, wide
        )

    def rolled_up(self) -> tuple[None, Sums]:
        """Roll up in place and hand the grid over."""
        cells, self._cells = self._cells, np.zeros(0, dtype=np.uint64)
        for k, axis in enumerate(self._cube.axes):
            counting.roll_up(cells, self._cube.shape, k, axis.parents)
        return None, cells


class SparseGrid:
    """Sorted positions of the cells that hold anybody."""

    def __init__(self, cube: Cube, rows: AxisRows) -> None:
        self._cube, self._rows = cube, rows
        self._pieces: list[tuple[Sums, Sums]] = []
        self._pending = 0

    def add(self, nodes: Nodes, added: Sums) -> None:
        """Add up the records' finest cells; what has been gathered is added up again when it grows large."""
        rows = self._rows
        position = np.zeros(len(added), dtype=np.uint64)
        for row, stride in zip(rows.narrow, rows.narrow_strides, strict=True):
            counting.positions_of(position, nodes.narrow[row], stride)
        for row, stride in zip(rows.wide, rows.wide_strides, strict=True):
            counting.positions_of(position, nodes.wide[row], stride)
        kept = added != 0
        self.add_cells(position[kept], added[kept])

    def add_records(self, nodes: Nodes, keys: Keys, inside: Mask) -> None:
        """Add each record's key and one to its finest cell, some records at a time."""
        for start in range(0, len(keys), _CHUNK):
            part = slice(start, start + _CHUNK)
            added = counting.increments(keys[part])
            if inside.size:
                added *= inside[part]
            self.add(Nodes(nodes.narrow[:, part], nodes.wide[:, part]), added)

    def add_cells(self, position: Sums, added: Sums) -> None:
        """Add sums at finest cells."""
        piece = sparse.aggregate(position, added, self._cube.size)
        self._pieces.append(piece)
        self._pending += len(piece[0])
        if self._pending > max(_PENDING, 2 * len(self._pieces[0][0])):
            self._merge()

    def rolled_up(self) -> tuple[NDArray[np.int64], Sums]:
        """Add the margins and sub-totals, axis by axis."""
        self._merge()
        position, sums = self._pieces[0]
        for k, axis in enumerate(self._cube.axes):
            position, sums = sparse.roll_up(position, sums, self._cube.shape, k, axis.parents)
        return position.astype(np.int64), sums

    def _merge(self) -> None:
        empty = np.zeros(0, dtype=np.uint64)
        pieces = self._pieces or [(empty, empty)]
        position = np.concatenate([p for p, _ in pieces])
        sums = np.concatenate([s for _, s in pieces])
        self._pieces = [sparse.aggregate(position, sums, self._cube.size)]
        self._pending = 0


def grid_for(cube: Cube, rows: AxisRows) -> DenseGrid | SparseGrid:
    """A dense grid where it is not too large."""
    return DenseGrid(cube, rows) if cube.size <= DENSE_CELLS else SparseGrid(cube, rows)
