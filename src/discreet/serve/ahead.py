"""Cells counted ahead: places by any two variables, from which most tables are added up without reading the records.

Accumulators (see maths.cells.counting) are sums over records, so that those of a coarser table are sums of finer ones,
counts and cell keys alike: a table that is added up is the one that would be counted. Like the records themselves, the
cells are in the memory of the server only; which ones there are does not depend on what was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice, product, takewhile
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells.counting import SMALL_GRID
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.tabulate.counter import AxisRows, DenseGrid, Sums, counted
from discreet.tabulate.tables import ConfidentialTable

Integers = NDArray[np.int64]
Maps = list[NDArray[np.uint32]]
AT_ONCE = 300  # cubes that are counted in one pass over the records
MOST_BYTES = 128 << 20  # of the cells of one unit
MOST_PAIRS = 1_000  # pairs of breakdowns whose nodes are compared once
CELL_BYTES = 8  # an accumulator
_NO_ROWS: dict[str, int] = {}


@dataclass(frozen=True, eq=False, repr=False)
class _Finest:
    """The finest cells of a cube, empty ones included: those of all finest nodes of its axes, last axis fastest."""

    cube: Cube
    cells: Sums


class CellsAhead:
    """The finest cells of some cubes of one unit, which are added once and stay; safe for threads."""

    def __init__(self) -> None:
        # variables -> cells of cubes that have them, the fewest first
        self._of: dict[frozenset[str], tuple[_Finest, ...]] = {}
        self._added: set[tuple[str, ...]] = set()
        self._bytes = 0
        self._last: tuple[Cube, tuple[_Finest, Maps]] | None = None  # a table is looked up more than once

    def wanted(self, likely: Iterable[Cube]) -> Iterator[tuple[Cube, ...]]:
        """The cubes whose cells are missing, as far as there is room for them, in groups to be counted together."""
        missing = (cube for cube in likely if _names(cube) not in self._added)
        while some := tuple(islice(missing, AT_ONCE)):
            fitting = tuple(takewhile(self._reserves, some))
            if fitting:
                yield fitting
            if len(fitting) < len(some):
                return

    def _reserves(self, cube: Cube) -> bool:
        """Reserve room for the cells of a cube, where there is some."""
        fits = self._bytes + CELL_BYTES * cube.size <= MOST_BYTES
        self._bytes += CELL_BYTES * cube.size if fits else 0
        return fits

    def add(self, cube: Cube, positions: Sums, cells: Sums) -> None:
        """Add the finest cells of a cube, for tables of any of its variables."""
        self._added.add(_names(cube))
        grid = np.zeros(cube.size, dtype=np.uint64)
        grid[positions.astype(np.int64)] = cells
        finest = np.ix_(*(np.flatnonzero(axis.finest) for axis in cube.axes))
        made = _Finest(cube, grid.reshape(cube.shape)[finest].reshape(-1))
        self._bytes += made.cells.nbytes - CELL_BYTES * cube.size
        for number in range(len(cube.axes) + 1):
            for axes in combinations(cube.axes, number):
                key = frozenset(axis.variable for axis in axes)
                self._of[key] = _with(self._of.get(key, ()), made, key)

    def has(self, cube: Cube) -> bool:
        """Whether a table can be added up."""
        return self._finer(cube) is not None

    def table(self, cube: Cube) -> ConfidentialTable | None:
        """A table of all records with all its margins, added up; None where the cells do not suffice."""
        found = self._finer(cube)
        if found is None:
            return None
        finest, maps = found
        inner = np.zeros(1, dtype=np.uint32)
        for along in maps[1:]:
            inner = np.add.outer(inner, along).reshape(-1)
        grid = DenseGrid(cube, AxisRows(cube, _NO_ROWS, _NO_ROWS))
        grid.add_shares(finest.cells, maps[0] if maps else inner, inner)
        return counted(cube, grid)

    def _finer(self, cube: Cube) -> tuple[_Finest, Maps] | None:
        """The fewest cells that a table can be added up from, and how."""
        last = self._last
        if last is not None and last[0] is cube:
            return last[1]
        if cube.base is not None or cube.count is not None or any(axis.is_grouping for axis in cube.axes):
            return None
        for finest in self._of.get(_variables(cube), ()):
            maps = _maps(finest.cube, cube)
            if maps is not None:
                self._last = cube, (finest, maps)
                return finest, maps
        return None


def _with(known: tuple[_Finest, ...], made: _Finest, variables: frozenset[str]) -> tuple[_Finest, ...]:
    """The cells of some variables and further ones, which take the place of more cells of the same breakdowns."""
    names = _names_of(made.cube, variables)
    same = [one for one in known if _names_of(one.cube, variables) == names]
    if any(len(one.cells) <= len(made.cells) for one in same):
        return known
    others = (one for one in known if one not in same)
    return tuple(sorted((*others, made), key=lambda one: len(one.cells)))


def _maps(finer: Cube, cube: Cube) -> Maps | None:
    """Axis of a finer cube -> (its finest node -> what it adds to the position in the other one); None if not finer."""
    asked = {axis.variable: (axis, cube.strides[k]) for k, axis in enumerate(cube.axes)}
    maps = []
    for axis in finer.axes:
        coarse, stride = asked.get(axis.variable, (axis, 0))
        along = _coarser(axis, coarse)
        if along is None:
            return None
        maps.append((along * stride).astype(np.uint32))
    return maps


def likely_cubes(unit: str, axes: Sequence[Breakdown], places: Sequence[str]) -> Iterator[Cube]:
    """Each place by any two other variables, or by all where there are fewer, as fine as a small grid allows.

    A cross may be finer along one axis or along another: each of these is a cube.
    """
    by_variable: dict[str, list[Breakdown]] = {}
    for axis in sorted(axes, key=len):
        by_variable.setdefault(axis.variable, []).append(axis)
    first = [name for name in by_variable if name in places]
    others = [name for name in by_variable if name not in places]
    for place in first or [""]:
        for pair in combinations(others, min(2, len(others))):
            chosen = [by_variable[name] for name in sorted({place, *pair} & by_variable.keys())]
            yield from (Cube("", unit, axes) for axes in _fitting(chosen))


def _fitting(chosen: Sequence[Sequence[Breakdown]]) -> Iterator[tuple[Breakdown, ...]]:
    """Crosses of one breakdown of each variable, coarse ones first, that make a small grid, while no finer one does."""
    for levels in product(*(range(len(known)) for known in chosen)):
        sizes = [len(known[level]) for known, level in zip(chosen, levels, strict=True)]
        cells = prod(sizes)
        finer = (
            cells // size * len(known[level + 1])
            for known, level, size in zip(chosen, levels, sizes, strict=True)
            if level + 1 < len(known)
        )
        if cells <= SMALL_GRID and all(more > SMALL_GRID for more in finer):
            yield tuple(known[level] for known, level in zip(chosen, levels, strict=True))


def _names(cube: Cube) -> tuple[str, ...]:
    return tuple(axis.full_name for axis in cube.axes)


def _variables(cube: Cube) -> frozenset[str]:
    return frozenset(axis.variable for axis in cube.axes)


def _names_of(cube: Cube, variables: frozenset[str]) -> tuple[str, ...]:
    return tuple(axis.full_name for axis in cube.axes if axis.variable in variables)


@lru_cache(maxsize=MOST_PAIRS)
def _coarser(fine: Breakdown, coarse: Breakdown) -> Integers | None:
    """Finest node of a breakdown, in order -> that of a coarser one; None where it is not coarser."""
    found = np.zeros(len(fine), dtype=np.int64)
    found[fine.node_of_leaf] = coarse.node_of_leaf
    is_coarser = np.array_equal(found[fine.node_of_leaf], coarse.node_of_leaf)
    return found[fine.finest] if is_coarser else None
