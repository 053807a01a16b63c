"""Counts many cubes of one unit in one pass over its blocks; margins are rolled up, never recounted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells import counting
from discreet.maths.cells.margins import with_margins
from discreet.population.encode import EncodedRecords
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.filter import Filter
from discreet.tabulate.parents import (
    Classes,
    Parent,
    Runs,
    Walk,
    can_share,
    outer_variable,
    parents_of,
    walks,
)
from discreet.tabulate.tables import ConfidentialTable

DENSE_CELLS = 1 << 26  # 512 MiB of accumulators
_PENDING = 1 << 23  # positions that are collected before they are summed
_CHUNK = 1 << 20  # records whose positions are computed at once

Sums = NDArray[np.uint64]
Keys = NDArray[np.uint32]
Mask = NDArray[np.bool_]


class Nodes:
    """The nodes of each record along each axis in use: narrow axes as bytes, wide ones as 32-bit integers."""

    def __init__(self, narrow: NDArray[np.uint8], wide: NDArray[np.uint32]) -> None:
        self.narrow, self.wide = narrow, wide


class Grid(Protocol):
    """An accumulator for the cells of one cube."""

    def add(self, nodes: Nodes, added: Sums) -> None:
        """Add each record's value to its finest cell."""

    def add_records(self, nodes: Nodes, keys: Keys, inside: Mask) -> None:
        """Add each record's key and one to its finest cell; only those inside, where ``inside`` is not empty."""

    def rolled_up(self) -> tuple[NDArray[np.int64] | None, Sums]:
        """All cells with margins and sub-totals: positions (None for the whole grid) and sums."""


class AxisRows:
    """The positions of a cube's axes in ``Nodes``, with their strides."""

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

    def finest(self) -> tuple[Sums, Sums]:
        """The positions and sums of the finest cells that are not zero."""
        here = np.flatnonzero(self._cells)
        return here.astype(np.uint64), self._cells[here]

    def add_shares(self, shares: Sums, outer: Keys, inner: Keys) -> None:
        """Add the share in row o and column i at the finest cell outer[o] + inner[i]; several may have one."""
        counting.add_shares(self._cells, shares, outer, inner)

    def add_cells(self, position: Sums, added: Sums) -> None:
        """Add sums at different finest cells."""
        self._cells[position.astype(np.int64)] += added

    def rolled_up(self) -> tuple[None, Sums]:
        """Roll up in place and return the grid."""
        cells, self._cells = self._cells, np.zeros(0, dtype=np.uint64)
        for k, axis in enumerate(self._cube.axes):
            counting.roll_up(cells, self._cube.shape, k, axis.parents)
        return None, cells


class LargestDenseGrid(DenseGrid):
    """The largest value of every cell of the cube, margins included."""

    def add(self, nodes: Nodes, added: Sums) -> None:
        """Raise each record's finest cell to the record's value."""
        rows, (narrow, wide) = self._rows, self._strides
        counting.largest_in_cube(
            self._cells, added, nodes.narrow, rows.narrow, narrow, nodes.wide, rows.wide, wide
        )

    def add_cells(self, position: Sums, added: Sums) -> None:
        """Raise different finest cells to the given values."""
        here = position.astype(np.int64)
        self._cells[here] = np.maximum(self._cells[here], added)

    def rolled_up(self) -> tuple[None, Sums]:
        """Roll up in place and return the grid."""
        cells, self._cells = self._cells, np.zeros(0, dtype=np.uint64)
        for k, axis in enumerate(self._cube.axes):
            counting.largest_up(cells, self._cube.shape, k, axis.parents)
        return None, cells


class SparseGrid:
    """Accumulators of the non-empty cells, by sorted positions: sums, or the largest values."""

    def __init__(self, cube: Cube, rows: AxisRows, largest: bool = False) -> None:
        self._cube, self._rows, self._largest = cube, rows, largest
        self._pieces: list[tuple[Sums, Sums]] = []
        self._pending = 0

    def add(self, nodes: Nodes, added: Sums) -> None:
        """Sum the records' finest cells; pending cells are merged when they become many."""
        rows = self._rows
        position = np.zeros(len(added), dtype=np.uint64)
        for row, stride in zip(rows.narrow, rows.narrow_strides, strict=True):
            counting.positions_of(position, nodes.narrow[row], stride)
        for row, stride in zip(rows.wide, rows.wide_strides, strict=True):
            counting.positions_of(position, nodes.wide[row], stride)
        counted = added != 0
        self.add_cells(position[counted], added[counted])

    def add_records(self, nodes: Nodes, keys: Keys, inside: Mask) -> None:
        """Add each record's key and one to its finest cell, in chunks."""
        for start in range(0, len(keys), _CHUNK):
            part = slice(start, start + _CHUNK)
            added = counting.increments(keys[part])
            if inside.size:
                added *= inside[part]
            self.add(Nodes(nodes.narrow[:, part], nodes.wide[:, part]), added)

    def add_cells(self, position: Sums, added: Sums) -> None:
        """Add sums at finest cells."""
        piece = counting.aggregate(position, added, self._cube.size, self._largest)
        self._pieces.append(piece)
        self._pending += len(piece[0])
        if self._pending > max(_PENDING, 2 * len(self._pieces[0][0])):
            self._merge()

    def finest(self) -> tuple[Sums, Sums]:
        """The positions, ascending, and sums of the finest cells."""
        self._merge()
        return self._pieces[0]

    def rolled_up(self) -> tuple[NDArray[np.int64], Sums]:
        """Add the margins and sub-totals; the grid is empty afterwards."""
        finest, self._pieces = self.finest(), []
        parents = [axis.parents for axis in self._cube.axes]
        return with_margins(*finest, self._cube.shape, parents, self._largest)

    def _merge(self) -> None:
        empty = np.zeros(0, dtype=np.uint64)
        pieces = self._pieces or [(empty, empty)]
        position = np.concatenate([p for p, _ in pieces])
        sums = np.concatenate([s for _, s in pieces])
        self._pieces = [counting.aggregate(position, sums, self._cube.size, self._largest)]
        self._pending = 0


def grid_for(cube: Cube, rows: AxisRows) -> DenseGrid | SparseGrid:
    """The accumulator of a cube: a dense grid if it is not too large."""
    return DenseGrid(cube, rows) if cube.size <= DENSE_CELLS else SparseGrid(cube, rows)


def largest_grid_for(cube: Cube, rows: AxisRows) -> DenseGrid | SparseGrid:
    """The same for the largest values of cells."""
    small = cube.size <= DENSE_CELLS
    return LargestDenseGrid(cube, rows) if small else SparseGrid(cube, rows, largest=True)


_NARROW = 256
SHORT_RUN = 32  # records on average: to count shorter runs takes longer than to place each record
_FEW_STEPS = 6  # between the numbers of successive codes: to look them up takes longer
_TASKS = 4  # in which codes are translated
_MANY = 1 << 18  # records for which it pays to translate two at a time
_NO_ROWS: dict[str, int] = {}
_Weights = tuple[DenseGrid | SparseGrid, DenseGrid | SparseGrid]  # sums, and the largest


class CubeCounter:
    """The accumulators of some cubes of one unit; blocks are added in any order, each on any number of threads.

    Cubes of moderate size are counted through parents, several cubes at once; the others by themselves. A parent takes
    no more memory than its cubes, or than ``room`` cells.
    """

    def __init__(self, cubes: Sequence[Cube], pool: Executor, room: int = 0) -> None:
        self._cubes, self._pool = cubes, pool
        alone = [k for k, cube in enumerate(cubes) if not _is_shared(cube)]
        parents = _parents(cubes, set(range(len(cubes))).difference(alone), room)
        self._rows = _Rows(
            [axis for k in alone for axis in cubes[k].axes if len(axis) > 1],
            [classes for _, some in parents for parent in some for classes in parent.cross.values()],
            outer_variable(parent for _, some in parents for parent in some),
        )
        narrow, wide = self._rows.axes
        rows = {k: AxisRows(cubes[k], narrow, wide) for k in alone}
        self._alone = {k: grid_for(cubes[k], row) for k, row in rows.items()}
        self._weights = {  # sums of weights, and the largest of them
            k: (grid_for(cubes[k], row), largest_grid_for(cubes[k], row))
            for k, row in rows.items()
            if cubes[k].weight
        }
        self._walks = [(who, Walk(some, *self._rows.classes, self._rows.outer)) for who, some in parents]
        self._counted = {
            k: (walk, at)
            for _, walk in self._walks
            for at, parent in enumerate(walk.parents)
            for k in parent.cubes
        }

    def add(self, block: EncodedRecords) -> None:
        """Count one block; each walk and each cube is one task, so that no two threads share a cell."""
        runs = self._rows.runs(block)
        nodes = self._rows.nodes(block, self._pool, runs)
        added = {_who(cube): None for cube in self._cubes}
        values = dict(zip(added, self._pool.map(lambda who: _added(block, *who), added), strict=True))

        def walked(task: tuple[_Who, Walk]) -> None:
            who, walk = task
            walk.add(nodes.narrow, nodes.wide, values[who], runs)

        def alone(k: int) -> None:
            cube, value = self._cubes[k], values[_who(self._cubes[k])]
            self._alone[k].add(nodes, value)
            if cube.weight:
                given = np.where(value != 0, block.weights[cube.weight], np.uint64(0))
                for grid in self._weights[k]:
                    grid.add(nodes, given)

        for _ in (*self._pool.map(walked, self._walks), *self._pool.map(alone, self._alone)):
            pass

    def table(self, k: int) -> ConfidentialTable:
        """Roll up the k-th cube and return its table; accumulators of its own are then released."""
        return _table(self._cubes[k], self._grid(k), self._weights.get(k))

    def finest(self, k: int) -> FinestCells:
        """The finest cells of the k-th cube."""
        return _finest(self._grid(k), self._weights.get(k))

    def _grid(self, k: int) -> DenseGrid | SparseGrid:
        if k in self._alone:
            return self._alone[k]
        walk, at = self._counted[k]
        grid = DenseGrid(self._cubes[k], AxisRows(self._cubes[k], _NO_ROWS, _NO_ROWS))
        grid.add_shares(walk.cells(at), *walk.parents[at].places(self._cubes[k]))
        return grid


_Who = tuple[Filter | None, str | None]


def _is_shared(cube: Cube) -> bool:
    return cube.weight is None and cube.size <= DENSE_CELLS and can_share(cube)


def _parents(cubes: Sequence[Cube], shared: set[int], room: int) -> list[tuple[_Who, Sequence[Parent]]]:
    """The walks: whom each counts, and its parents."""
    of: dict[_Who, dict[int, Cube]] = {}
    for k in sorted(shared):
        of.setdefault(_who(cubes[k]), {})[k] = cubes[k]
    return [(who, some) for who, members in of.items() for some in walks(parents_of(members, room))]


@dataclass(frozen=True, eq=False)
class _Translation:
    """How the codes of a variable become the numbers that are counted by."""

    key: str | Classes  # the name of an axis, or classes
    variable: str
    numbers: NDArray[Any]  # leaf -> number

    @property
    def is_narrow(self) -> bool:
        """Whether a number is one byte."""
        return int(self.numbers.max(initial=0)) < _NARROW

    @cached_property
    def _shift(self) -> int | None:
        """What is added to a code, where that is all."""
        first = int(self.numbers[0]) if len(self.numbers) else 0
        same = np.array_equal(self.numbers, np.arange(first, first + len(self.numbers)))
        return first if same else None

    @cached_property
    def _pairs(self) -> NDArray[np.uint16]:
        """The numbers of two codes, by both of them as one word."""
        every = np.zeros(_NARROW, dtype=np.uint16)
        every[: len(self.numbers)] = self.numbers
        pairs: NDArray[np.uint16] = np.add.outer(every << 8, every).ravel()
        return pairs

    @cached_property
    def _steps(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The codes from which the number is another one, and how much more it is, modulo 256."""
        change = np.diff(self.numbers.astype(np.int64), prepend=0)
        begin = np.flatnonzero(change)
        return begin.astype(np.uint8), change[begin].astype(np.uint8)

    def fill(self, codes: NDArray[Any], out: NDArray[Any]) -> None:
        """Translate the codes of some records; sums vectorise, and one lookup may serve two neighbours."""
        if self._shift is not None:  # in the wider type, because the last code could overflow
            np.add(codes, self._shift, out=out, dtype=out.dtype, casting="unsafe")
        elif codes.itemsize == out.itemsize == 1 and len(self._steps[0]) <= _FEW_STEPS:
            counting.recode_by_steps(codes, *self._steps, out)
        elif codes.itemsize == out.itemsize == 1 and len(codes) >= _MANY and len(codes) % 2 == 0:
            counting.recode(codes.view(np.uint16), self._pairs, out.view(np.uint16))
        else:
            counting.recode(codes, self.numbers.astype(out.dtype), out)


class _Rows:
    """The numbers of each record that are counted by: its nodes along some axes, and its classes."""

    def __init__(self, axes: Sequence[Breakdown], classes: Sequence[Classes], outer: str | None) -> None:
        by_name = {axis.full_name: axis for axis in axes}
        tables = [
            *(_Translation(axis.full_name, axis.variable, axis.node_of_leaf) for axis in by_name.values()),
            *(_Translation(one, one.variable, one.of_leaf) for one in dict.fromkeys(classes)),
        ]
        self._narrow = [table for table in tables if table.is_narrow]
        self._wide = [table for table in tables if not table.is_narrow]
        self._room = Nodes(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.uint32))
        self._outer_variable = outer
        self._outer = [one for one in dict.fromkeys(classes) if one.variable == outer]

    @property
    def axes(self) -> tuple[dict[str, int], dict[str, int]]:
        """Name of an axis -> its narrow row, its wide row."""
        narrow, wide = (_numbered(rows) for rows in (self._narrow, self._wide))
        return (
            {key: row for key, row in narrow if isinstance(key, str)},
            {key: row for key, row in wide if isinstance(key, str)},
        )

    @property
    def classes(self) -> tuple[dict[Classes, int], dict[Classes, int]]:
        """Classes -> their narrow row, their wide row."""
        narrow, wide = (_numbered(rows) for rows in (self._narrow, self._wide))
        return (
            {key: row for key, row in narrow if isinstance(key, Classes)},
            {key: row for key, row in wide if isinstance(key, Classes)},
        )

    @property
    def outer(self) -> dict[Classes, int]:
        """Classes of the outer variable -> their row in the runs."""
        return {classes: row for row, classes in enumerate(self._outer)}

    def runs(self, block: EncodedRecords) -> Runs | None:
        """The runs of records with one leaf of the outer variable; None where they are short."""
        if self._outer_variable is None:
            return None
        codes = block.codes[self._outer_variable]
        bounds = counting.runs_of(codes, len(block) // SHORT_RUN)
        if bounds is None:
            return None
        leaves = codes[bounds[:-1]]
        return Runs(bounds, np.array([classes.of_leaf[leaves] for classes in self._outer]))

    def nodes(self, block: EncodedRecords, pool: Executor, runs: Runs | None) -> Nodes:
        """The numbers of the records of a block; the next block overwrites them. What runs have is left out."""
        nodes = self._room_for(len(block))
        left_out = () if runs is None else self._outer
        rows = [*zip(self._narrow, nodes.narrow, strict=True), *zip(self._wide, nodes.wide, strict=True)]
        columns = [(table, out) for table, out in rows if table.key not in left_out]

        def fill(task: int) -> None:
            for table, out in columns[task::_TASKS]:
                table.fill(block.codes[table.variable], out)

        for _ in pool.map(fill, range(_TASKS)):
            pass
        return nodes

    def _room_for(self, records: int) -> Nodes:
        """Memory that is reused for every block: new pages would cost more than filling them."""
        narrow, wide = len(self._narrow) * records, len(self._wide) * records
        if narrow > len(self._room.narrow) or wide > len(self._room.wide):
            self._room = Nodes(np.empty(narrow, dtype=np.uint8), np.empty(wide, dtype=np.uint32))
        return Nodes(
            self._room.narrow[:narrow].reshape(len(self._narrow), records),
            self._room.wide[:wide].reshape(len(self._wide), records),
        )


def _numbered(rows: Sequence[_Translation]) -> list[tuple[str | Classes, int]]:
    return [(table.key, row) for row, table in enumerate(rows)]


@dataclass(frozen=True, eq=False, repr=False)
class FinestCells:
    """The finest cells of a cube in some of the records: positions, ascending, accumulators and sums of weights."""

    positions: Sums
    cells: Sums
    weights: Sums | None = None  # sums of weights, where the cube has a weight
    largest: Sums | None = None  # the largest weight of each


class CubeParts:
    """One cube that is added up from the finest cells of parts of the records, in any order."""

    def __init__(self, cube: Cube, grid: DenseGrid | SparseGrid, weights: _Weights | None) -> None:
        self._cube, self._grid, self._weights = cube, grid, weights

    @classmethod
    def whole(cls, cube: Cube) -> CubeParts:
        """For all cells of the cube, as a table needs them."""
        rows = AxisRows(cube, _NO_ROWS, _NO_ROWS)
        beside = (grid_for(cube, rows), largest_grid_for(cube, rows)) if cube.weight else None
        return cls(cube, grid_for(cube, rows), beside)

    @classmethod
    def some(cls, cube: Cube) -> CubeParts:
        """For some of its cells: memory grows with those that occur."""
        rows = AxisRows(cube, _NO_ROWS, _NO_ROWS)
        beside = (SparseGrid(cube, rows), SparseGrid(cube, rows, largest=True)) if cube.weight else None
        return cls(cube, SparseGrid(cube, rows), beside)

    def add(self, part: FinestCells) -> None:
        """Add the cells of some records."""
        self._grid.add_cells(part.positions.copy(), part.cells.copy())
        if self._weights is not None and part.weights is not None and part.largest is not None:
            for grid, values in zip(self._weights, (part.weights, part.largest), strict=True):
                grid.add_cells(part.positions.copy(), values.copy())

    def finest(self) -> FinestCells:
        """The finest cells so far."""
        return _finest(self._grid, self._weights)

    def table(self) -> ConfidentialTable:
        """The table with all margins."""
        return _table(self._cube, self._grid, self._weights)


def _finest(grid: DenseGrid | SparseGrid, weights: _Weights | None) -> FinestCells:
    positions, cells = grid.finest()
    if weights is None:
        return FinestCells(positions, cells)
    return FinestCells(positions, cells, *(_aligned(positions, *one.finest()) for one in weights))


def _table(cube: Cube, grid: DenseGrid | SparseGrid, weights: _Weights | None) -> ConfidentialTable:
    if not cube.margins:
        finest, cells = grid.finest()
        return ConfidentialTable(cube, cells, finest.astype(np.int64))
    positions, cells = grid.rolled_up()
    if weights is None:
        return ConfidentialTable(cube, cells, positions)
    sums, largest = (_beside(positions, one) for one in weights)
    return ConfidentialTable(cube, cells, positions, sums, largest)


def counted(cube: Cube, grid: DenseGrid | SparseGrid) -> ConfidentialTable:
    """Roll up the grid of a cube that was not counted from blocks."""
    positions, cells = grid.rolled_up()
    return ConfidentialTable(cube, cells, positions)


def _who(cube: Cube) -> _Who:
    return cube.base, cube.count


def _added(block: EncodedRecords, base: Filter | None, count: str | None) -> Sums:
    """What each record adds: zero where it is outside the base or not flagged."""
    added = counting.increments(block.keys)
    if base is not None:
        added[~base.mask(block.codes)] = 0
    if count is not None:
        added[~block.flags[count]] = 0
    return added


def _beside(positions: NDArray[np.int64] | None, weights: DenseGrid | SparseGrid) -> Sums:
    """The sums of weights of the same cells, or the largest; a cell whose weights are all zero has no entry."""
    where, sums = weights.rolled_up()
    return sums if positions is None or where is None else _aligned(positions, where, sums)


def _aligned(positions: NDArray[Any], where: NDArray[Any], sums: Sums) -> Sums:
    aligned = np.zeros(len(positions), dtype=np.uint64)
    counting.align(aligned, positions.view(np.int64), where.view(np.int64), sums)
    return aligned


def groups(cubes: Iterable[Cube], cells: int) -> Iterator[tuple[Cube, ...]]:
    """Split cubes into groups whose dense accumulators together have at most this many cells."""
    group: list[Cube] = []
    total = 0
    for cube in cubes:
        size = min(cube.size, DENSE_CELLS) * (3 if cube.weight else 1)
        if group and total + size > cells:
            yield tuple(group)
            group, total = [], 0
        group.append(cube)
        total += size
    if group:
        yield tuple(group)
