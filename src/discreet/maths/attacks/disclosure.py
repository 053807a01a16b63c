"""Small counts and groups whose members share a category: kernels over sparse cells, and deconvolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.cells.alignment import (
    Box,
    Integers,
    Places,
    add_digits,
    inside,
    nodes_along,
    wider_cells,
)
from discreet.maths.noise.law import Floats, Pmf

ROUNDS = 400


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights of the true counts among the cells published in the window, and the joint law of counts and values."""

    counts: tuple[int, ...]
    first: int  # the smallest published value of the window
    joint: Floats  # [count, value - first]: probability of both, within the window

    def chance_true(self, value: int) -> float | None:
        """Pr[true count = value | published value]; None where no such value can be published."""
        column = self.joint[:, value - self.first] if value >= self.first else np.zeros(1)
        total = float(column.sum())
        if not total:
            return None
        return float(column[self.counts.index(value)]) / total if value in self.counts else 0.0


def mixture(
    laws: Sequence[tuple[int, Pmf]], first: int, seen: Sequence[int], rounds: int = ROUNDS
) -> Mixture:
    """Estimate the weights from the numbers of cells published as first, first + 1, ..

    ``laws`` are true counts with the laws of their published values.
    """
    counts, q = _windowed(laws, first, len(seen))
    shares = np.asarray(seen, dtype=np.float64) / max(1, sum(seen))
    weights = 1 / (1 + np.array(counts, dtype=np.float64))
    weights /= weights.sum()
    for _ in range(rounds):
        expected = weights @ q
        ratio = np.divide(shares, expected, out=np.zeros_like(shares), where=expected > 0)
        weights = weights * (q @ ratio)
    return Mixture(counts, first, weights[:, None] * q)


def _windowed(laws: Sequence[tuple[int, Pmf]], first: int, width: int) -> tuple[tuple[int, ...], Floats]:
    """The counts that can be published in the window, and their laws within it."""
    counts, rows = [], []
    for count, law in laws:
        row = np.zeros(width)
        low, high = max(first, law.first), min(first + width, law.last + 1)
        if low < high:
            row[low - first : high - first] = law.p[low - law.first : high - law.first]
        if row.sum() > 0:
            counts.append(count)
            rows.append(row / row.sum())
    return tuple(counts), np.array(rows).reshape(len(counts), width)


PUBLISHED, ORIGINAL, COUNTED = 0, 1, 2  # columns of the values: as published; before and after swapping
FULL, NEAR, ALL_BUT_ONE = 1, 8, 64  # marks of a category's cell in column 0; << v in column v


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally_small(values: Any, crosstab: Any, own: Any, tallies: Any) -> None:
    """Tally the cells by their counts, up to the largest kind."""
    below = tallies.shape[1]
    for i in range(crosstab.size):
        c, x = crosstab[i], values[i, PUBLISHED]
        for v in range(values.shape[1] if own[i] else 0):
            y = values[i, v]
            if y <= 0:
                continue
            tallies[c, 0, v] += 1
            tallies[c, 0, 2 + v] += v > 0 and x > 0
            if y < below:
                tallies[c, y, v] += 1
                tallies[c, y, 2 + v] += v > 0 and y == x


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally_values(values: Any, crosstab: Any, own: Any, found: Any) -> None:
    """Count the cells by their published values."""
    for i in range(crosstab.size):
        x = values[i, PUBLISHED]
        if own[i] and 0 <= x < found.shape[1]:
            found[crosstab[i], x] += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gather(
    values: Any, along: Any, line: Any, inside: Any, top: Any, where: Any, nonempty: Any, crossed: Any
) -> None:
    """For each row: its largest category, the cell of that one, and how many are nonempty, lost and created."""
    columns = values.shape[1]
    for i in range(along.size):
        if not inside[along[i]] or line[i] < 0:
            continue
        row, x = line[i], values[i, PUBLISHED]
        for v in range(columns):
            y = values[i, v]
            if y > 0:
                nonempty[row, v] += 1
                if y > top[row, v]:
                    top[row, v], where[row, v] = y, i
            if v and y > 0 and x <= 0:
                crossed[row, v - 1] += 1  # published empty, but is not
        if columns > 1 and x > 0 and values[i, ORIGINAL] == 0:
            crossed[row, 2] += 1  # empty, but not published so


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mark_rows(
    values: Any,
    along: Any,
    heads: Any,
    informative: Any,
    top: Any,
    where: Any,
    nonempty: Any,
    allowed: Any,
    marks: Any,
) -> None:
    """Bits of the largest category's cell for column v of its row: FULL, NEAR (or full) and ALL_BUT_ONE << v."""
    numerator, denominator, same_noise = allowed
    for row in range(heads.size):
        for v in range(values.shape[1]):
            i, n, c = where[row, v], values[heads[row], v], top[row, v]
            if i < 0 or n <= 0 or not informative[along[i]]:
                continue
            agrees = c == n or v != PUBLISHED or same_noise == 0
            if nonempty[row, v] == 1 and agrees:
                marks[i] |= (FULL | NEAR) << v
            elif c * denominator >= numerator * n:
                marks[i] |= NEAR << v
            if n >= 2 and c == n - 1:
                marks[i] |= ALL_BUT_ONE << v


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _follows(wider: Any, others: Any, marks: Any, i: Any, bit: Any) -> bool:
    for a in others:
        j = wider[a, i]
        if j >= 0 and marks[j] & bit:
            return True
    return False


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _kind(i: Any, v: Any, n: Any, wider: Any, others: Any, marks: Any) -> int:
    """The RowKind of a row of n whose largest category is at i; 0 for a plain one."""
    if marks[i] & (FULL << v):
        if _follows(wider, others, marks, i, FULL << v):
            return 3
        return 1 if n == 1 else 2
    if marks[i] & (NEAR << v) and not _follows(wider, others, marks, i, NEAR << v):
        return 4
    return 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _count(tallies: Any, kind: Any, v: Any, columns: Any, mark: Any, bit: Any) -> None:
    """One row of a kind in column v, and whether it is so in the same category of the others."""
    tallies[kind, v] += 1
    if v == PUBLISHED:
        for w in range(1, columns):
            tallies[kind, 2 + w] += (mark & (bit << w)) != 0
    elif v == ORIGINAL:
        tallies[kind, 5] += (mark & bit) != 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally_rows(
    values: Any,
    crosstab: Any,
    own: Any,
    wider: Any,
    heads: Any,
    areas: Any,
    others: Any,
    marks: Any,
    where: Any,
    tallies: Any,
    examples: Any,
    by_area: Any,
) -> None:
    """Tally the rows by their kinds and store some as examples."""
    columns = values.shape[1]
    for row in range(heads.size):
        head = heads[row]
        c = crosstab[row]
        if not own[row]:
            continue
        for v in range(columns):
            i, n = where[row, v], values[head, v]
            if i < 0 or n <= 0:
                continue
            mark = marks[i]
            kind = _kind(i, v, n, wider, others, marks)
            if kind > 0:
                _count(tallies[c], kind, v, columns, mark, NEAR if kind == 4 else FULL)
            if mark & (ALL_BUT_ONE << v):
                _count(tallies[c], 5, v, columns, mark, ALL_BUT_ONE)
            if v == PUBLISHED and 0 < kind < 3:
                true = (mark & (FULL << ORIGINAL)) != 0
                by_area[areas[row], 0] += 1
                by_area[areas[row], 1] += true
                if true or columns == 1:
                    _note(examples[c], i)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally_empty(
    values: Any,
    crosstab: Any,
    own: Any,
    heads: Any,
    nonempty: Any,
    crossed: Any,
    categories: Any,
    tallies: Any,
) -> None:
    """Tally all nonempty groups (kind 0), and their empty categories (kind 6)."""
    columns = values.shape[1]
    for row in range(heads.size):
        c, n = crosstab[row], values[heads[row]]
        if not own[row]:
            continue
        for v in range(columns):
            if n[v] > 0:
                tallies[c, 0, v] += 1
                tallies[c, 6, v] += categories - nonempty[row, v]
        for w in range(1, columns):
            if n[PUBLISHED] > 0:
                tallies[c, 0, 2 + w] += n[w] > 0
                tallies[c, 6, 2 + w] += categories - nonempty[row, PUBLISHED] - crossed[row, w - 1]
        if columns > 1 and n[ORIGINAL] > 0:
            tallies[c, 0, 5] += n[PUBLISHED] > 0
            tallies[c, 6, 5] += categories - nonempty[row, ORIGINAL] - crossed[row, 2]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _note(examples: Any, i: Any) -> None:
    for k in range(examples.size):
        if examples[k] < 0:
            examples[k] = i
            return


class TallyColumn(IntEnum):
    """What is counted of each kind of disclosure."""

    SEEN = 0  # in the published table
    ORIGINAL = 1  # in the true one before swapping
    COUNTED = 2  # in the true one after swapping, before noise
    TRUE = 3  # of those seen: so in the original
    TRUE_COUNTED = 4  # of those seen: so after swapping
    KEPT = 5  # of those in the original: seen in the published table


class RowKind(IntEnum):
    """The kinds of rows."""

    GROUPS = 0  # all nonempty groups
    INDIVIDUAL = 1  # full, one person, and does not follow
    GROUP = 2  # full, two or more, and does not follow
    FOLLOWING = 3  # full, and follows
    NEAR = 4  # near, and does not follow
    ALL_BUT_ONE = 5
    EMPTY = 6  # empty categories of nonempty groups


Tallies = NDArray[np.int64]  # [cross-tabulation, kind, column]


@dataclass(frozen=True, eq=False)
class CubeGrid:
    """A cube as the kernels need it: strides, and for each axis the parents of its nodes, the total first."""

    strides: tuple[int, ...]
    parents: tuple[NDArray[np.int32], ...]
    owned: NDArray[np.bool_]  # cross-tabulation -> whether any of it is counted here
    earlier: Mapping[int, tuple[Box, ...]] = field(default_factory=dict)  # what of it is counted elsewhere

    @cached_property
    def depths(self) -> tuple[NDArray[np.int64], ...]:
        """Levels below the total of each node."""
        return tuple(map(depths_of, self.parents))

    @cached_property
    def radices(self) -> tuple[int, ...]:
        """What one level along each axis adds to the number of a cross-tabulation (last axis fastest)."""
        sizes = [int(depths.max()) + 1 for depths in self.depths]
        return tuple(int(np.prod(sizes[k + 1 :], dtype=np.int64)) for k in range(len(sizes)))

    def crosstabs(self, cells: Integers) -> Places:
        """The cross-tabulation of each cell."""
        found = np.zeros(len(cells), dtype=np.int32)
        if self.strides:
            sizes = np.array([len(depths) for depths in self.depths])
            tables = [depths * radix for depths, radix in zip(self.depths, self.radices, strict=True)]
            add_digits(cells, np.array(self.strides), sizes, np.concatenate(tables).astype(np.int32), found)
        return found

    def own(self, cells: Integers, crosstab: NDArray[Any]) -> NDArray[np.bool_]:
        """Which cells, of these cross-tabulations, are counted here."""
        found: NDArray[np.bool_] = self.owned[crosstab]
        for number, boxes in self.earlier.items():
            self._take_out(found, cells, np.flatnonzero(crosstab == number), boxes, range(len(self.strides)))
        return found

    def own_rows(self, cells: Integers, crosstab: NDArray[Any], axis: int, depth: int) -> NDArray[np.bool_]:
        """Which rows are counted here: ``cells`` are their groups; elsewhere are those with all their categories."""
        found: NDArray[np.bool_] = self.owned[crosstab]
        level = self.depths[axis] == depth
        others = [k for k in range(len(self.strides)) if k != axis]
        for number, boxes in self.earlier.items():
            whole = [box for box in boxes if box[axis][level].all()]
            self._take_out(found, cells, np.flatnonzero(crosstab == number), whole, others)
        return found

    def _take_out(
        self,
        found: NDArray[np.bool_],
        cells: Integers,
        here: Integers,
        boxes: Iterable[Box],
        axes: Sequence[int],
    ) -> None:
        for box in boxes:
            found[here[inside(box, cells[here], self.strides, axes)]] = False


@dataclass(frozen=True, eq=False)
class Side:
    """The cells of a cube with their values: only published ones, or also the original and the counted ones."""

    grid: CubeGrid
    cells: Integers
    values: Integers  # [cell, column]
    crosstab: Places  # which cross-tabulation each belongs to
    own: NDArray[np.bool_]  # whether it is counted here

    @cached_property
    def wider(self) -> NDArray[np.int32]:
        """[axis, cell]: index of the cell with the parent's code."""
        found = np.empty((len(self.grid.strides), len(self.cells)), dtype=np.int32)
        for k, (stride, parents) in enumerate(zip(self.grid.strides, self.grid.parents, strict=True)):
            found[k] = wider_cells(self.cells, stride, parents)
        return found

    @cached_property
    def _by_crosstab(self) -> tuple[Integers, Integers]:
        """The cells by cross-tabulation, and where each begins."""
        begin = np.zeros(int(self.crosstab.max(initial=-1)) + 3, dtype=np.int64)
        order = np.empty(len(self.crosstab), dtype=np.int64)
        _by_number(self.crosstab, begin, order)
        return order, begin[:-1]

    def rows(self, crosstab: int) -> Integers:
        """The cells of a cross-tabulation, ascending."""
        order, begin = self._by_crosstab
        return order[begin[crosstab] : begin[crosstab + 1]] if crosstab + 1 < len(begin) else order[:0]


@dataclass(frozen=True, eq=False)
class AttributeRows:
    """What one attribute axis discloses: tallies, examples of disclosing rows, and their areas."""

    tallies: Tallies
    examples: Places  # [cross-tabulation, number]: the category's cell of disclosing rows, -1 for none
    areas: Integers  # [node of the area axis, 2]: full rows that do not follow, seen and true


def depths_of(parents: NDArray[np.int32]) -> NDArray[np.int64]:
    """Levels below the total; every node follows its parent."""
    depths = np.zeros(len(parents), dtype=np.int64)
    for node in range(1, len(parents)):
        depths[node] = depths[parents[node]] + 1
    return depths


def side(cells: Integers, values: Integers, grid: CubeGrid) -> Side:
    """Find the cross-tabulation of each cell."""
    crosstab = grid.crosstabs(cells)
    return Side(grid, cells, values, crosstab, grid.own(cells, crosstab))


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _by_number(numbers: Any, begin: Any, order: Any) -> None:
    """Sort by counting: ``order`` lists the places of number 0, then of 1, ..; those of n begin at begin[n]."""
    for number in numbers:
        begin[number + 2] += 1
    for n in range(2, begin.size):
        begin[n] += begin[n - 1]
    for i in range(numbers.size):
        n = numbers[i] + 1
        order[begin[n]] = i
        begin[n] += 1


def parts_elsewhere(table: Side, grid: CubeGrid, axis: int) -> NDArray[np.bool_]:
    """Which cells have parts along an axis that earlier tables show."""
    parents, stride = grid.parents[axis], grid.strides[axis]
    first = np.arange(len(parents))
    first[parents[:0:-1]] = np.arange(
        len(parents) - 1, 0, -1
    )  # a part, where there are any: all are published equally
    along = nodes_along(table.cells, stride, len(parents))
    crosstab = table.crosstab + np.int32(grid.radices[axis]) * (first[along] != along)
    own = grid.own(table.cells + (first[along] - along) * stride, crosstab)
    found: NDArray[np.bool_] = grid.owned[crosstab] & ~own
    return found


def small_counts(table: Side, grid: CubeGrid, below: int) -> Tallies:
    """Cells by count: kind v are those of value v < below, kind 0 all that are not empty."""
    tallies = np.zeros((len(grid.owned), below, len(TallyColumn)), dtype=np.int64)
    tally_small(table.values, table.crosstab, table.own, tallies)
    tallies[..., TallyColumn.KEPT] = tallies[..., TallyColumn.TRUE]  # the same cells on both sides
    return _doubled(tallies, table.values)


def histogram(table: Side, grid: CubeGrid, below: int) -> Integers:
    """Cells of each cross-tabulation by published value, 0 <= value < below: [cross-tabulation, value]."""
    found = np.zeros((len(grid.owned), below), dtype=np.int64)
    tally_values(table.values, table.crosstab, table.own, found)
    return found


def rows(
    table: Side, grid: CubeGrid, axis: int, share: Fraction, *, same_noise: bool, area: int | None, keep: int
) -> AttributeRows:
    """Judge all rows of one attribute axis.

    ``same_noise``: a group and a category with the same members are published equal, so that a published row is full
    only where both values agree. ``area`` is the axis of the areas, if there is one.
    """
    found = AttributeRows(
        np.zeros((len(grid.owned), len(RowKind), len(TallyColumn)), dtype=np.int64),
        np.full((len(grid.owned), keep), -1, dtype=np.int32),
        np.zeros((1 if area is None else len(grid.parents[area]), 2), dtype=np.int64),
    )
    along = nodes_along(table.cells, grid.strides[axis], len(grid.parents[axis]))
    line, heads = _lines(table.cells, along, grid.strides[axis], len(grid.parents[axis]))
    areas = np.zeros(len(heads), dtype=np.int32)
    if area is not None and area != axis:
        areas = nodes_along(table.cells[heads], grid.strides[area], len(grid.parents[area]))
    others = np.array([k for k in range(len(grid.strides)) if k != axis], dtype=np.int64)
    marks = np.zeros(len(table.cells), dtype=np.int16)
    allowed = np.array([share.numerator, share.denominator, same_noise], dtype=np.int64)
    for depth in range(1, int(grid.depths[axis].max()) + 1):
        crosstab = table.crosstab[heads] + np.int32(depth * grid.radices[axis])
        own = grid.own_rows(table.cells[heads], crosstab, axis, depth)
        divided, informative = _level(grid.parents[axis], depth)
        top, where, nonempty, crossed = _largest(table.values, along, line, divided, len(heads))
        marks[:] = 0  # a leaf above this depth was judged at its own
        mark_rows(table.values, along, heads, informative, top, where, nonempty, allowed, marks)
        tally_rows(
            table.values, crosstab, own, table.wider, heads, areas, others, marks, where,
            found.tallies, found.examples, found.areas,
        )  # fmt: skip
        tally_empty(
            table.values, crosstab, own, heads, nonempty, crossed, int(divided.sum()), found.tallies,
        )  # fmt: skip
    return AttributeRows(_doubled(found.tallies, table.values), found.examples, found.areas)


def _doubled(tallies: Tallies, values: Integers) -> Tallies:
    """Where nothing was swapped the counted table is the original one."""
    if values.shape[1] == COUNTED:
        tallies[..., TallyColumn.COUNTED] = tallies[..., TallyColumn.ORIGINAL]
        tallies[..., TallyColumn.TRUE_COUNTED] = tallies[..., TallyColumn.TRUE]
    return tallies


def _lines(cells: Integers, along: Places, stride: int, nodes: int) -> tuple[Places, Places]:
    """Number the rows by their groups: the row of each cell, -1 where the group is not listed; the group's cell."""
    to_total = np.zeros(nodes, dtype=np.int32)
    to_total[0] = -1
    totals = wider_cells(cells, stride, to_total)
    heads = np.flatnonzero(along == 0).astype(np.int32)
    number = np.full(len(cells) + 1, -1, dtype=np.int32)  # the last for cells whose group is not listed
    number[heads] = np.arange(len(heads), dtype=np.int32)
    line: Places = number[totals]
    return line, heads


def _level(parents: NDArray[np.int32], depth: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which nodes partition a group at a depth (its own and the leaves above), and which of them are informative.

    A code that is its parent's only one adds nothing to the parent, and a leaf above was judged at its own depth.
    """
    depths = depths_of(parents)
    children = np.bincount(parents[1:], minlength=len(parents))
    inside = (depths == depth) | ((depths < depth) & (children == 0))
    inside[0] = False
    siblings = np.where(parents >= 0, children[parents], 0)
    return inside, (depths == depth) & (siblings > 1)


Largest = tuple[Integers, Places, Integers, Integers]


def _largest(values: Integers, along: Places, line: Places, inside: NDArray[np.bool_], lines: int) -> Largest:
    """For each row and column of values: largest category, its cell, nonempty categories; those lost and created."""
    top = np.zeros((lines, values.shape[1]), dtype=np.int64)
    where = np.full((lines, values.shape[1]), -1, dtype=np.int32)
    nonempty = np.zeros((lines, values.shape[1]), dtype=np.int64)
    crossed = np.zeros((lines, 3), dtype=np.int64)
    gather(values, along, line, inside, top, where, nonempty, crossed)
    return top, where, nonempty, crossed
