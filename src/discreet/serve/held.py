"""All records of one unit held in memory as codes, ready to be counted by any cross of breakdowns.

It owns the columns and the counting; what it counts is confidential and goes to the source alone, which perturbs it.

Records are counted chunk by chunk: what a filter leaves of a chunk stays in the cache, and no request needs memory of
the size of the population.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.maths import counting
from discreet.population.block import Block, Codes
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.schema.expression import Comparison, Filter, Term
from discreet.tabulate.counter import counted
from discreet.tabulate.grids import AxisRows, Nodes, grid_for
from discreet.tabulate.table import ConfidentialTable

NARROW = 256  # axes of at most so many nodes are held as bytes
CHUNK = 1 << 18  # records that are counted at once

Sums = NDArray[np.uint64]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _only(added: Any, inside: Any, out: Any) -> None:
    for r in range(added.size):
        out[r] = added[r] if inside[r] else np.uint64(0)


class HeldUnit:
    """The records of one unit; safe for threads."""

    def __init__(self, blocks: Iterable[Block], axes: Sequence[Breakdown]) -> None:
        """Take over all blocks; ``axes`` are the breakdowns that can be counted without delay."""
        pieces = list(blocks)
        self._codes = {
            name: np.concatenate([block.codes[name] for block in pieces]) for name in pieces[0].codes
        }
        self._flags = {
            name: np.concatenate([block.flags[name] for block in pieces]) for name in pieces[0].flags
        }
        self._added = counting.increments(np.concatenate([block.keys for block in pieces]))
        narrow = [axis for axis in axes if 1 < len(axis) <= NARROW]
        wide = [axis for axis in axes if len(axis) > NARROW]
        self._narrow = _NodeColumns(narrow, self._codes, len(self), np.uint8)
        self._wide = _NodeColumns(wide, self._codes, len(self), np.uint32)

    def __len__(self) -> int:
        return len(self._added)

    def count(self, cube: Cube) -> ConfidentialTable:
        """Count every cell of a cube, margins rolled up."""
        narrow, wide = self._columns(cube)
        grid = grid_for(cube, AxisRows(cube, narrow.rows(cube), wide.rows(cube)))
        for chunk, start in enumerate(range(0, len(self), CHUNK)):
            part = slice(start, min(start + CHUNK, len(self)))
            nodes = Nodes(narrow.columns[chunk], wide.columns[chunk])
            grid.add(nodes, self._counted(part, cube.base, cube.count))
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

    def _counted(self, part: slice, base: Filter | None, count: str | None) -> Sums:
        """What each record of a chunk adds; nothing where it is outside the base or not flagged."""
        if base is None and count is None:
            return self._added[part]
        inside = (
            np.ones(part.stop - part.start, dtype=bool) if base is None else self._passing(base.term, part)
        )
        if count is not None:
            inside &= self._flags[count][part]
        added = np.empty(part.stop - part.start, dtype=np.uint64)
        _only(self._added[part], inside, added)
        return added

    def _passing(self, term: Term, part: slice) -> NDArray[np.bool_]:
        """Which records of a chunk pass; as Filter.mask, but for a lookup that needs no wider copy of the codes."""
        if isinstance(term, Comparison):
            passing = np.empty(part.stop - part.start, dtype=bool)
            counting.recode(self._codes[term.variable][part], term.lookup, passing)
            return passing
        join = np.logical_and if term.word == "and" else np.logical_or
        first, *rest = term.terms
        found = self._passing(first, part)
        for one in rest:
            join(found, self._passing(one, part), out=found)
        return found


class _NodeColumns:
    """The nodes of all records along some axes, chunk by chunk; a row is filled when it is first wanted."""

    def __init__(
        self, axes: Sequence[Breakdown], codes: Mapping[str, Codes], records: int, kind: type[np.generic]
    ) -> None:
        chunks = -(-records // CHUNK)
        size = min(records, CHUNK)
        self.columns = np.empty((chunks, len(axes), size), dtype=kind)  # memory is taken as rows are filled
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
        table = axis.node_of_leaf.astype(self.columns.dtype)
        for chunk, start in enumerate(range(0, len(codes), CHUNK)):
            part = codes[start : start + CHUNK]
            counting.recode(part, table, self.columns[chunk, row, : len(part)])
        self._filled.add(row)
