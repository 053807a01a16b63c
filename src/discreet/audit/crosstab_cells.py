"""The cells of tables by cross-tabulation, numbered alike in every table that holds them, to be subtracted.

It owns finding and naming them; what a difference of them gives away is differencing's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.audit.published import Cells, Integers, PublishedTable, Universe
from discreet.schema.codelist import Codelist
from discreet.schema.crosstab import CrossTab, Levels, codes_at, crosstabs
from discreet.schema.cube import Cube


@dataclass(frozen=True, eq=False)
class Held:
    """A cross-tabulation and the table that it is read from."""

    table: PublishedTable
    crosstab: CrossTab

    @property
    def codes(self) -> int:
        """How many cells of the cross-tabulation the table has."""
        return prod(len(level.nodes) for level in self.crosstab.levels)

    def has(self, numbers: Integers) -> NDArray[np.bool_]:
        """Which of some cells, by common number, the table has."""
        return self.crosstab.cells(self.table.cube, numbers)[1]


def held(universe: Universe) -> dict[Levels, Held]:
    """Every cross-tabulation of a universe, from the first of the tables that hold most of it."""
    found: dict[Levels, Held] = {}
    for table in universe.tables:
        for crosstab in crosstabs(table.cube, universe.codelists):
            one, levels = Held(table, crosstab), crosstab.signature.levels
            if levels not in found or one.codes > found[levels].codes:
                found[levels] = one
    return found


class SplitTable:
    """The cells of one table, parted into its cross-tabulations."""

    def __init__(self, cube: Cube, cells: Cells) -> None:
        self._cube = cube
        self._depths = [int(axis.depths.max()) + 1 for axis in cube.axes]
        which = self._which(cells[0])
        order = np.argsort(which, kind="stable")
        self._which_sorted, self._cells, self._values = which[order], cells[0][order], cells[1][order]

    def _which(self, cells: Integers) -> Integers:
        tables = [axis.depths.astype(np.int64) for axis in self._cube.axes]
        return self._cube.numbered(cells, tables, self._depths, range(len(tables)))

    def positions(self, crosstab: CrossTab) -> Cells:
        """The cells of a cross-tabulation by their positions in the cube, ascending."""
        code = 0
        for depth, many in zip(crosstab.depths, self._depths, strict=True):
            code = code * many + depth
        begin, end = np.searchsorted(self._which_sorted, [code, code + 1])
        return self._cells[begin:end], self._values[begin:end]

    def numbered(self, crosstab: CrossTab) -> Cells:
        """The cells of a cross-tabulation by their common numbers, ascending."""
        cells, values = self.positions(crosstab)
        numbers = crosstab.numbers(self._cube, cells)
        order = np.argsort(numbers, kind="stable")
        return numbers[order], values[order]


def described(levels: Levels, codelists: Mapping[str, Codelist], number: int) -> dict[str, str]:
    """A cell by its codes, without totals."""
    cell: dict[str, str] = {}
    for variable, depth in reversed(levels):
        codes = codes_at(codelists[variable], depth)
        number, place = divmod(number, len(codes))
        cell[variable] = codes[place]
    return dict(reversed(cell.items()))


class Reader:
    """Reads cross-tabulations, of public tables or of others by their id, and keeps the table read last."""

    def __init__(self, tables: Mapping[str, Cells] | None = None) -> None:
        self._tables = tables
        self._last: tuple[PublishedTable, SplitTable] | None = None

    def cells(self, one: Held) -> Cells:
        """The cells of a cross-tabulation by their common numbers, ascending."""
        return self._split(one).numbered(one.crosstab)

    def positions(self, one: Held) -> Cells:
        """The cells of a cross-tabulation by their positions in the table, ascending."""
        return self._split(one).positions(one.crosstab)

    def _split(self, one: Held) -> SplitTable:
        if self._last is None or self._last[0] is not one.table:
            cells = one.table.load() if self._tables is None else self._tables[one.table.id]
            self._last = (one.table, SplitTable(one.table.cube, cells))
        return self._last[1]
