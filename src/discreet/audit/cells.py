"""Cells of a universe of tables: each once, and numbered alike in every table that shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import is_

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import Cells, Integers, PublishedTable, Truth, Universe, cells_of
from discreet.maths.attacks.disclosure import CubeGrid
from discreet.maths.cells.alignment import Box, covers, left_over, meets
from discreet.programme.codelist import Codelist
from discreet.programme.cube import (
    CrossTab,
    Cube,
    Levels,
    Signature,
    all_crosstabs,
    codes_at,
    levels_along,
)


@dataclass(frozen=True, eq=False)
class OwnedTable:
    """A table and what it is the first to show; cross-tabulations are numbered by depth, last axis fastest.

    Those that are not published, or are sums of published cells, show nothing.
    """

    universe: Universe
    table: PublishedTable
    crosstabs: tuple[CrossTab, ...]
    sizes: tuple[int, ...]  # cross-tabulation -> how many of its cells no earlier table shows
    earlier: dict[int, tuple[Box, ...]]  # cross-tabulation -> what earlier tables show of it, where not all

    @property
    def cube(self) -> Cube:
        """Its cube."""
        return self.table.cube

    @cached_property
    def owned(self) -> NDArray[np.bool_]:
        """Cross-tabulation -> whether it shows new cells."""
        return np.array(self.sizes) > 0

    @cached_property
    def new(self) -> tuple[int, ...]:
        """The cross-tabulations that show new cells."""
        return tuple(np.flatnonzero(self.owned).tolist())

    @cached_property
    def depths(self) -> tuple[tuple[int, ...], ...]:
        """Cross-tabulation -> depth along each axis."""
        return tuple(one.depths for one in self.crosstabs)

    def levels(self, crosstab: int) -> Levels:
        """What a cross-tabulation crosses."""
        return self.crosstabs[crosstab].signature.levels

    def level_name(self, variable: str, depth: int) -> str:
        """What a level of one of its variables is called: GEO.COUNTY."""
        (axis,) = (one for one in self.cube.axes if one.variable == variable)
        return axis.levels[depth - 1]

    def crosstab_name(self, crosstab: int) -> str:
        """What a cross-tabulation is called: GEO.COUNTY x SEX."""
        return self.cube.level_name(self.crosstabs[crosstab].depths)

    def signature(self, crosstab: int) -> Signature:
        """The signature of a cross-tabulation in the whole release."""
        return self.universe.signature(self.levels(crosstab))

    def size(self, crosstab: int) -> int:
        """How many cells of a cross-tabulation are new."""
        return self.sizes[crosstab]

    @cached_property
    def grid(self) -> CubeGrid:
        """The cube as the kernels need it."""
        parents = tuple(axis.parents for axis in self.cube.axes)
        return CubeGrid(self.cube.strides, parents, self.owned, self.earlier)

    def which(self, cells: Integers) -> Integers:
        """To which cross-tabulation each cell belongs; -1 where an earlier table shows it."""
        found = crosstab_numbers(self.cube, cells)
        found[~self.grid.own(cells, found)] = -1
        return found

    def true(self, truth: Truth) -> Cells:
        """The true counts of its table."""
        return cells_of(truth.counted, self.table.id)

    def values(self, truth: Truth | None) -> list[Cells]:
        """Its cells as published, then with the true counts those before swapping and after it."""
        sides = () if truth is None else truth.sides
        return [self.table.load(), *(cells_of(one, self.table.id) for one in sides)]


def crosstab_numbers(cube: Cube, cells: Integers) -> Integers:
    """To which cross-tabulation of a cube each cell belongs, by the order of ``all_crosstabs``."""
    return cube.crosstab_numbers(cells)


def measured(cube: Cube) -> NDArray[np.bool_]:
    """Cross-tabulation -> whether it is published with noise of its own, and not left out or a sum of others."""
    if cube.shown is None:
        return np.ones(len(cube.depths), dtype=bool)
    present = set(cube.measured)
    return np.array([depths in present for depths in cube.depths], dtype=bool)


def once(universe: Universe) -> tuple[OwnedTable, ...]:
    """The tables of a universe, each with what it is the first to show."""
    shown: dict[Levels, list[Box]] = {}
    codes: dict[bytes, NDArray[np.bool_]] = {}
    return tuple(_owned(universe, table, shown, codes) for table in universe.tables)


def _owned(
    universe: Universe,
    table: PublishedTable,
    shown: dict[Levels, list[Box]],
    codes: dict[bytes, NDArray[np.bool_]],
) -> OwnedTable:
    """``codes`` has every set of codes once, so that most comparisons are of a set with itself."""
    every, present = all_crosstabs(table.cube, universe.codelists), measured(table.cube).tolist()
    along = levels_along(table.cube, universe.codelists)
    has = [
        {depth: codes.setdefault(level.has.tobytes(), level.has) for depth, level in one.items()}
        for one in along
    ]
    nodes = [{depth: len(level.nodes) for depth, level in one.items()} for one in along]
    sizes: list[int] = []
    earlier: dict[int, tuple[Box, ...]] = {}
    for number, crosstab in enumerate(every):
        if not present[number]:
            sizes.append(0)
            continue
        crossed, depths = _crossed(crosstab), crosstab.depths
        here = tuple([has[k][depths[k]] for k in crossed])  # codes by their places
        before = shown.setdefault(crosstab.signature.levels, [])
        if before and any(all(map(is_, box, here)) or covers(box, here) for box in before):
            sizes.append(0)
            continue
        beside = [box for box in before if meets(box, here)]
        whole = prod([nodes[k][depths[k]] for k in crossed])
        sizes.append(left_over(here, beside) if beside else whole)
        if sizes[-1]:
            before.append(here)
            if beside:
                earlier[number] = tuple(_nodes(table.cube, crosstab, box) for box in beside)
    return OwnedTable(universe, table, every, tuple(sizes), earlier)


def _crossed(crosstab: CrossTab) -> list[int]:
    """The axes that are not total, in the order common to all tables."""
    return [k for k in crosstab.order if crosstab.depths[k]]


def _nodes(cube: Cube, crosstab: CrossTab, codes: Box) -> Box:
    """The same by the nodes of a table's axes."""
    nodes = [np.arange(size) == 0 for size in cube.shape]
    for k, shown in zip(_crossed(crosstab), codes, strict=True):
        level = crosstab.levels[k]
        nodes[k][0] = False
        nodes[k][level.nodes] = shown[level.places]
    return tuple(nodes)


Way = tuple[str, str | int]  # what figures are grouped by, and which group


def ways(owned: OwnedTable, levels: Levels, areas: tuple[str, ...]) -> Iterator[Way]:
    """The groups that a cross-tabulation's figures are added to."""
    yield "total", ""
    yield "universes", owned.universe.counted
    yield "cubes", owned.table.id
    yield "axes", len(levels)
    for variable, depth in levels:
        if variable in areas:
            yield "levels", owned.level_name(variable, depth)


@dataclass(frozen=True, eq=False)
class FirstShown:
    """What one table is the first to show of a cross-tabulation."""

    owned: OwnedTable
    at: int  # the number of the cross-tabulation in the table

    @property
    def crosstab(self) -> CrossTab:
        """The cross-tabulation in the table."""
        return self.owned.crosstabs[self.at]


@dataclass(frozen=True, eq=False)
class LocatedCrosstab:
    """A cross-tabulation and its source: one table, or several that show parts of it."""

    parts: tuple[FirstShown, ...]

    @property
    def table(self) -> str:
        """The id of the first table."""
        return self.parts[0].owned.table.id

    def has(self, numbers: Integers) -> NDArray[np.bool_]:
        """Which of some cells, by common number, any of the tables has."""
        present = [part.crosstab.cells(part.owned.cube, numbers)[1] for part in self.parts]
        found: NDArray[np.bool_] = np.any(present, axis=0)
        return found


def located_crosstabs(universe: Universe) -> dict[Levels, LocatedCrosstab]:
    """Every cross-tabulation of a universe, from the first tables that show all its cells."""
    found: dict[Levels, list[FirstShown]] = {}
    for owned in once(universe):
        for at in owned.new:
            found.setdefault(owned.levels(at), []).append(FirstShown(owned, at))
    return {levels: LocatedCrosstab(tuple(parts)) for levels, parts in found.items()}


class SplitTable:
    """The cells of one table, split into its cross-tabulations by their numbers, without those of number -1."""

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
    """Reads cross-tabulations, from public tables or others by their id, and caches the table read last."""

    def __init__(self, tables: Mapping[str, Cells] | None = None) -> None:
        self._tables = tables
        self._last: tuple[OwnedTable, SplitTable] | None = None

    def cells(self, one: LocatedCrosstab) -> Cells:
        """The cells of a cross-tabulation by their common numbers, ascending."""
        return by_number(
            (part.crosstab.numbers(part.owned.cube, cells), values) for part, cells, values in self.parts(one)
        )

    def parts(self, one: LocatedCrosstab) -> Iterator[tuple[FirstShown, Integers, Integers]]:
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
    """The cells of several parts as one, ascending."""
    numbers, values = (np.concatenate(some) for some in zip(*parts, strict=True))
    order = np.argsort(numbers, kind="stable")
    return numbers[order], values[order]
