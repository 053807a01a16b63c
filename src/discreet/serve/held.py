"""All records of one unit held in memory as codes, ready to be counted by any cross of breakdowns.

It owns the columns and the counting; what it counts is confidential and goes to the source alone, which perturbs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

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

Mask = NDArray[np.bool_]


class HeldUnit:
    """The records of one unit; safe for threads."""

    def __init__(self, blocks: Sequence[Block], axes: Sequence[Breakdown]) -> None:
        """Take over all blocks; ``axes`` are the breakdowns that can be counted without delay."""
        first = blocks[0]
        self._codes = {name: np.concatenate([block.codes[name] for block in blocks]) for name in first.codes}
        self._flags = {name: np.concatenate([block.flags[name] for block in blocks]) for name in first.flags}
        self._keys = np.concatenate([block.keys for block in blocks])
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
