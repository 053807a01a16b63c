"""All records of one unit held in memory as codes, ready to be counted by any cross of breakdowns.

It owns the columns and the counting; what it counts is confidential and goes to the source alone, which perturbs it.
"""

from __future__ import annotations

from collections import OrderedDict
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
from discreet.tabulate.grids import AxisRows, Nodes, grid_for
from discreet.tabulate.table import ConfidentialTable

NARROW = 256  # axes of at most so many nodes are held as bytes
KEPT_BASES = 2  # population bases whose increments are kept: eight bytes a record each

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
        self._everybody = counting.increments(np.concatenate([block.keys for block in pieces]))
        self._bases: OrderedDict[tuple[str, str], Sums] = OrderedDict()
        self._lock = Lock()
        narrow = [axis for axis in axes if 1 < len(axis) <= NARROW]
        wide = [axis for axis in axes if len(axis) > NARROW]
        self._narrow = _NodeColumns(narrow, self._codes, len(self), np.uint8)
        self._wide = _NodeColumns(wide, self._codes, len(self), np.uint32)

    def __len__(self) -> int:
        return len(self._everybody)

    def count(self, cube: Cube) -> ConfidentialTable:
        """Count every cell of a cube, margins rolled up."""
        narrow, wide = self._rows(cube, self._narrow), self._rows(cube, self._wide)
        if len(narrow) + len(wide) < sum(len(axis) > 1 for axis in cube.axes):
            columns, narrow, wide = self._made_for(cube)
        else:
            columns = Nodes(self._narrow.columns, self._wide.columns)
        grid = grid_for(cube, AxisRows(cube, narrow, wide))
        grid.add(columns, self._added(cube.base, cube.count))
        positions, cells = grid.rolled_up()
        return ConfidentialTable(cube, cells, positions)

    def _rows(self, cube: Cube, held: _NodeColumns) -> dict[str, int]:
        return {axis.full_name: row for axis in cube.axes if (row := held.row(axis)) is not None}

    def _made_for(self, cube: Cube) -> tuple[Nodes, dict[str, int], dict[str, int]]:
        """The nodes of a cube that has axes of its own, as groupings are."""
        used = [axis for axis in cube.axes if len(axis) > 1]
        narrow = _NodeColumns([a for a in used if len(a) <= NARROW], self._codes, len(self), np.uint8)
        wide = _NodeColumns([a for a in used if len(a) > NARROW], self._codes, len(self), np.uint32)
        rows = self._rows(cube, narrow), self._rows(cube, wide)
        return Nodes(narrow.columns, wide.columns), *rows

    def _added(self, base: Filter | None, count: str | None) -> Sums:
        """What each record adds; nothing where it is outside the base or not flagged."""
        if base is None and count is None:
            return self._everybody
        key = (base.canonical if base else "", count or "")
        with self._lock:
            if key in self._bases:
                self._bases.move_to_end(key)
                return self._bases[key]
        added = self._masked(base, count)
        with self._lock:
            self._bases[key] = added
            while len(self._bases) > KEPT_BASES:
                self._bases.popitem(last=False)
        return added

    def _masked(self, base: Filter | None, count: str | None) -> Sums:
        inside = np.ones(len(self), dtype=bool) if base is None else self._passing(base.term)
        if count is not None:
            inside &= self._flags[count]
        added = np.empty_like(self._everybody)
        _only(self._everybody, inside, added)
        return added

    def _passing(self, term: Term) -> NDArray[np.bool_]:
        """Which records pass; as Filter.mask, but for a lookup that needs no wider copy of the codes."""
        if isinstance(term, Comparison):
            passing = np.empty(len(self), dtype=bool)
            counting.recode(self._codes[term.variable], term.lookup, passing)
            return passing
        join = np.logical_and if term.word == "and" else np.logical_or
        first, *rest = term.terms
        found = self._passing(first)
        for part in rest:
            join(found, self._passing(part), out=found)
        return found


class _NodeColumns:
    """The nodes of all records along some axes: one row for each, filled when it is first wanted."""

    def __init__(
        self, axes: Sequence[Breakdown], codes: Mapping[str, Codes], records: int, kind: type[np.generic]
    ) -> None:
        self.columns = np.empty((len(axes), records), dtype=kind)  # memory is taken as rows are filled
        self._codes = codes
        self._axes = {axis.full_name: (row, axis) for row, axis in enumerate(axes)}
        self._filled: set[int] = set()
        self._lock = Lock()

    def row(self, axis: Breakdown) -> int | None:
        """The row of an axis, filled; None where it is not among them."""
        found = self._axes.get(axis.full_name)
        if found is None:
            return None
        row, held = found
        if row not in self._filled:
            with self._lock:
                if row not in self._filled:
                    self._fill(row, held)
                    self._filled.add(row)
        return row

    def _fill(self, row: int, axis: Breakdown) -> None:
        codes = self._codes[axis.variable.partition("~")[0]]
        counting.recode(codes, axis.node_of_leaf.astype(self.columns.dtype), self.columns[row])
