"""The cells of tables by cross-tabulation, numbered alike in every table that holds them, to be subtracted.

It owns reading and naming them; which table shows a cell first is once's, what a difference gives away differencing's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.audit.once import OwnedTable, once
from discreet.audit.published import Cells, Integers, Universe
from discreet.audit.truth import cells_of
from discreet.schema.codelist import Codelist
from discreet.schema.crosstab import CrossTab, Levels, codes_at


@dataclass(frozen=True, eq=False)
class Shown:
    """What one table is the first to show of a cross-tabulation."""

    owned: OwnedTable
    at: int  # the number of the cross-tabulation in the table

    @property
    def crosstab(self) -> CrossTab:
        """The cross-tabulation in the table."""
        return self.owned.crosstabs[self.at]


@dataclass(frozen=True, eq=False)
class Held:
    """A cross-tabulation and where it is read from: one table, or several that show parts of it."""

    parts: tuple[Shown, ...]

    @property
    def table(self) -> str:
        """The id of the first table."""
        return self.parts[0].owned.table.id

    def has(self, numbers: Integers) -> NDArray[np.bool_]:
        """Which of some cells, by common number, any of the tables has."""
        held = [part.crosstab.cells(part.owned.cube, numbers)[1] for part in self.parts]
        found: NDArray[np.bool_] = np.any(held, axis=0)
        return found


def held(universe: Universe) -> dict[Levels, Held]:
    """Every cross-tabulation of a universe, from the first tables that show all its cells."""
    found: dict[Levels, list[Shown]] = {}
    for owned in once(universe):
        for at in owned.new:
            found.setdefault(owned.levels(at), []).append(Shown(owned, at))
    return {levels: Held(tuple(parts)) for levels, parts in found.items()}


class SplitTable:
    """The cells of one table, parted into its cross-tabulations by their numbers; those of number -1 are left out."""

    def __init__(self, cells: Cells, which: Integers) -> None:
        if which.max(initial=0) < 2**15:
            which = which.astype(np.int16)  # of 16 bits: sorted by counting
        order = np.argsort(which, kind="stable")
        self._which, self._cells, self._values = which[order], cells[0][order], cells[1][order]

    def positions(self, crosstab: int) -> Cells:
        """The cells of a cross-tabulation by their positions in the cube, ascending."""
        begin, end = np.searchsorted(self._which, [crosstab, crosstab + 1])
        return self._cells[begin:end], self._values[begin:end]


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
        self._last: tuple[OwnedTable, SplitTable] | None = None

    def cells(self, one: Held) -> Cells:
        """The cells of a cross-tabulation by their common numbers, ascending."""
        return by_number(
            (part.crosstab.numbers(part.owned.cube, cells), values) for part, cells, values in self.parts(one)
        )

    def parts(self, one: Held) -> Iterator[tuple[Shown, Integers, Integers]]:
        """What each table adds to a cross-tabulation, by positions in the table, ascending, and the values."""
        for part in one.parts:
            yield part, *self._split(part.owned).positions(part.at)

    def _split(self, owned: OwnedTable) -> SplitTable:
        if self._last is None or self._last[0] is not owned:
            table = owned.table
            cells = table.load() if self._tables is None else cells_of(self._tables, table.id)
            self._last = (owned, SplitTable(cells, owned.which(cells[0])))
        return self._last[1]


def by_number(parts: Iterator[Cells]) -> Cells:
    """Cells of several parts in one, ascending."""
    numbers, values = (np.concatenate(some) for some in zip(*parts, strict=True))
    order = np.argsort(numbers, kind="stable")
    return numbers[order], values[order]
