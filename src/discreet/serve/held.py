"""All records of one unit held in memory as codes, ready to be counted by any cross of breakdowns.

It owns the columns and the counting; what it counts is confidential and goes to the source alone, which perturbs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.maths import counting
from discreet.population.block import Block, Codes
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.tabulate.counter import counted
from discreet.tabulate.grids import AxisRows, Nodes, grid_for
from discreet.tabulate.table import ConfidentialTable

NARROW = 256  # axes of at most so many nodes are held as bytes
_GROWTH = 4  # memory that is not written to is not taken

Mask = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


class HeldUnit:
    """The records of one unit; safe for threads."""

    def __init__(self, blocks: Iterable[Block], axes: Sequence[Breakdown]) -> None:
        """Take over all blocks, one after the other; ``axes`` are what can be counted without delay."""
        codes: dict[str, _Growing[Any]] = {}
        flags: dict[str, _Growing[np.bool_]] = {}
        keys: dict[str, _Growing[np.uint32]] = {}
        for block in blocks:
            _add(codes, block.codes)
            _add(flags, block.flags)
            _add(keys, {"": block.keys})
        self._codes = {name: column.whole for name, column in codes.items()}
        self._flags = {name: column.whole for name, column in flags.items()}
        self._keys = keys[""].whole if keys else np.zeros(0, dtype=np.uint32)
        narrow = [axis for axis in axes if 1 < len(axis) <= NARROW]
        wide = [axis for axis in axes if len(axis) > NARROW]
        self._narrow = _NodeColumns(narrow, self._codes, len(self), np.uint8)
        self._wide = _NodeColumns(wide, self._codes, len(self), np.uint32)

    def __len__(self) -> int:
        return len(self._keys)

    def count(self, cube: Cube) -> ConfidentialTable:
        """Count every cell of a cube, margins rolled up."""
        narrow, wide = self._columns(cube)
        grid = grid_for(cube, AxisRows(cube, narrow.rows(cube), wide.rows(cube)))
        grid.add_records(Nodes(narrow.columns, wide.columns), self._keys, self._inside(cube))
        return counted(cube, grid)

    def prepare(self) -> None:
        """Fill what would else be filled when it is first wanted."""
        self._narrow.fill()
        self._wide.fill()

    def _columns(self, cube: Cube) -> tuple[_NodeColumns, _NodeColumns]:
        """The columns that are held, or some made for a cube that has axes of its own, as groupings are."""
        used = [axis for axis in cube.axes if len(axis) > 1]
        if all(self._narrow.holds(axis) or self._wide.holds(axis) for axis in used):
            return self._narrow, self._wide
        narrow = [axis for axis in used if len(axis) <= NARROW]
        wide = [axis for axis in used if len(axis) > NARROW]
        return (
            _NodeColumns(narrow, self._codes, len(self), np.uint8),
            _NodeColumns(wide, self._codes, len(self), np.uint32),
        )

    def _inside(self, cube: Cube) -> Mask:
        """Which records are counted; empty where all are."""
        if cube.count is None:
            return np.zeros(0, dtype=bool) if cube.base is None else cube.base.mask(self._codes)
        flagged = self._flags[cube.count]
        return flagged if cube.base is None else flagged & cube.base.mask(self._codes)


class _Growing(Generic[T]):
    """A column that pieces are copied to, so that each can be forgotten at once."""

    def __init__(self, first: NDArray[T]) -> None:
        self._held, self._size = np.empty(_GROWTH * len(first), dtype=first.dtype), 0
        self.add(first)

    def add(self, piece: NDArray[T]) -> None:
        """Copy a piece to the end."""
        end = self._size + len(piece)
        if end > len(self._held):
            larger = np.empty(_GROWTH * end, dtype=self._held.dtype)
            larger[: self._size] = self.whole
            self._held = larger
        self._held[self._size : end] = piece
        self._size = end

    @property
    def whole(self) -> NDArray[T]:
        """All pieces, one after the other."""
        return self._held[: self._size]


def _add(columns: dict[str, _Growing[T]], pieces: Mapping[str, NDArray[T]]) -> None:
    for name, piece in pieces.items():
        if name in columns:
            columns[name].add(piece)
        else:
            columns[name] = _Growing(piece)


class _NodeColumns:
    """The nodes of all records along some axes; a row is filled when it is first wanted."""

    def __init__(
        self, axes: Sequence[Breakdown], codes: Mapping[str, Codes], records: int, kind: type[np.generic]
    ) -> None:
        self.columns = np.empty((len(axes), records), dtype=kind)  # memory is taken as rows are filled
        self._codes = codes
        self._axes = {axis.full_name: (row, axis) for row, axis in enumerate(axes)}
        self._filled: set[int] = set()
        self._lock = Lock()

    def holds(self, axis: Breakdown) -> bool:
        """Whether an axis has a row here."""
        return axis.full_name in self._axes

    def rows(self, cube: Cube) -> dict[str, int]:
        """The rows of the axes of a cube that stand here, filled."""
        held = [self._axes[axis.full_name] for axis in cube.axes if self.holds(axis)]
        for row, axis in held:
            if row not in self._filled:
                with self._lock:
                    self._fill(row, axis)
        return {axis.full_name: row for row, axis in held}

    def fill(self) -> None:
        """Fill all rows."""
        for row, axis in self._axes.values():
            with self._lock:
                self._fill(row, axis)

    def _fill(self, row: int, axis: Breakdown) -> None:
        if row in self._filled:
            return
        codes = self._codes[axis.variable.partition("~")[0]]
        counting.recode(codes, axis.node_of_leaf.astype(self.columns.dtype), self.columns[row])
        self._filled.add(row)
