"""Cells counted ahead: places by any two variables, from which most tables are added up without reading the records.

Accumulators (see maths.cells.counting) are sums over records, so that those of a coarser table are sums of finer ones,
counts and cell keys alike: a table that is added up is the one that would be counted. Like the records themselves, the
cells are in the memory of the server only; which ones there are does not depend on what was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells.counting import SMALL_GRID
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.tabulate.counter import AxisRows, DenseGrid, Sums, counted
from discreet.tabulate.tables import ConfidentialTable

Integers = NDArray[np.int64]
MOST_BYTES = 128 << 20  # of the cells of one unit
MOST_PAIRS = 1_000  # pairs of breakdowns whose nodes are compared once
CELL_BYTES = 16  # a position and an accumulator
_NO_ROWS: dict[str, int] = {}


@dataclass(frozen=True, eq=False, repr=False)
class _Finest:
    """The finest cells of a cube."""

    cube: Cube
    positions: Integers
    cells: Sums


class CellsAhead:
    """The finest cells of some cubes of one unit, which are added once and stay; safe for threads."""

    def __init__(self) -> None:
        self._of: dict[frozenset[str], _Finest] = {}  # variables -> the finest cube that has them
        self._added: set[tuple[str, ...]] = set()
        self._bytes = 0

    def wants(self, cube: Cube) -> bool:
        """Whether the cells of a cube are missing, and there is room for them."""
        return _names(cube) not in self._added and self._bytes + CELL_BYTES * cube.size <= MOST_BYTES

    def add(self, cube: Cube, positions: Sums, cells: Sums) -> None:
        """Add the finest cells of a cube, for tables of any of its variables."""
        self._added.add(_names(cube))
        self._bytes += positions.nbytes + cells.nbytes
        made = _Finest(cube, positions.astype(np.int64), cells)
        for number in range(len(cube.axes) + 1):
            for axes in combinations(cube.axes, number):
                key = frozenset(axis.variable for axis in axes)
                known = self._of.get(key)
                if known is None or _size(known.cube, key) < _size(cube, key):
                    self._of[key] = made

    def has(self, cube: Cube) -> bool:
        """Whether a table can be added up."""
        found = self._finer(cube)
        return found is not None and _maps(found.cube, cube) is not None

    def table(self, cube: Cube) -> ConfidentialTable | None:
        """A table of all records with all its margins, added up; None where the cells do not suffice."""
        finest = self._finer(cube)
        maps = None if finest is None else _maps(finest.cube, cube)
        if finest is None or maps is None:
            return None
        position = np.zeros(1, dtype=np.uint32)
        for along in maps:
            position = np.add.outer(position, along).reshape(-1)
        grid = DenseGrid(cube, AxisRows(cube, _NO_ROWS, _NO_ROWS))
        grid.gather(position[finest.positions], finest.cells)
        return counted(cube, grid)

    def _finer(self, cube: Cube) -> _Finest | None:
        """Cells that a table might be added up from; looked up once for each, since others may take their place."""
        if cube.base is not None or cube.count is not None or any(axis.is_grouping for axis in cube.axes):
            return None
        return self._of.get(_variables(cube))


def _maps(finer: Cube, cube: Cube) -> list[NDArray[np.uint32]] | None:
    """Axis of a finer cube -> (its node -> what it adds to the position in the other one); None if it is not finer."""
    asked = {axis.variable: (axis, cube.strides[k]) for k, axis in enumerate(cube.axes)}
    maps = []
    for axis in finer.axes:
        coarse, stride = asked.get(axis.variable, (None, 0))
        along = np.zeros(len(axis), dtype=np.int64) if coarse is None else _coarser(axis, coarse)
        if along is None:
            return None
        maps.append((along * stride).astype(np.uint32))
    return maps


def likely_cubes(unit: str, axes: Sequence[Breakdown], places: Sequence[str]) -> Iterator[Cube]:
    """Each place by any two other variables, or by all where there are fewer, as fine as a small grid allows."""
    by_variable: dict[str, list[Breakdown]] = {}
    for axis in sorted(axes, key=len):
        by_variable.setdefault(axis.variable, []).append(axis)
    first = [name for name in by_variable if name in places]
    others = [name for name in by_variable if name not in places]
    for place in first or [""]:
        for pair in combinations(others, min(2, len(others))):
            chosen = {name: by_variable[name] for name in sorted({place, *pair} & by_variable.keys())}
            cube = Cube("", unit, tuple(_fitting(chosen)))
            if cube.size <= SMALL_GRID:
                yield cube


def _fitting(chosen: Mapping[str, Sequence[Breakdown]]) -> Iterator[Breakdown]:
    """One breakdown of each variable, the finest; the longest is made coarser as long as their grid is not small."""
    levels = {name: len(known) - 1 for name, known in chosen.items()}

    def size(name: str) -> int:
        return len(chosen[name][levels[name]])

    while prod(map(size, levels)) > SMALL_GRID and any(levels.values()):
        longest = max((name for name in levels if levels[name]), key=size)
        levels[longest] -= 1
    yield from (chosen[name][level] for name, level in levels.items())


def _names(cube: Cube) -> tuple[str, ...]:
    return tuple(axis.full_name for axis in cube.axes)


def _variables(cube: Cube) -> frozenset[str]:
    return frozenset(axis.variable for axis in cube.axes)


def _size(cube: Cube, variables: frozenset[str]) -> int:
    return prod(len(axis) for axis in cube.axes if axis.variable in variables)


@lru_cache(maxsize=MOST_PAIRS)
def _coarser(fine: Breakdown, coarse: Breakdown) -> Integers | None:
    """Finest node of a breakdown -> that of a coarser one, 0 for other nodes; None where it is not coarser."""
    found = np.zeros(len(fine), dtype=np.int64)
    found[fine.node_of_leaf] = coarse.node_of_leaf
    return found if np.array_equal(found[fine.node_of_leaf], coarse.node_of_leaf) else None
