"""Disclosures in one table: small counts, and groups whose members share a category; kernels on sorted sparse cells.

It owns what counts as a disclosure; which tables are looked at and how it is told is the audit's.

A *row* is a group of records (a code along every axis but one, the attribute) divided by the attribute at one level.
With n the group's count and c the largest count of a category, the row is

    full         one category is not empty and n > 0: whoever is known to be in the group has it;
    near         c >= share * n, and not full;
    all but one  c = n - 1 with n >= 2: the one other learns it of all the rest.

A full (near) row *follows* where the group, widened along one axis to the parent code, is full (full or near) in the
same category already: it tells nothing of its own, as that nobody below fifteen works in some village.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.maths.aligned import Integers, Places, nodes_along, wider_cells
from discreet.maths.boxes import Box, inside
from discreet.maths.disclosure_kernels import (
    COUNTED,
    gather,
    mark_rows,
    tally_empty,
    tally_rows,
    tally_small,
    tally_values,
)


class Column(IntEnum):
    """What is counted of each kind of disclosure."""

    SEEN = 0  # in the published table
    ORIGINAL = 1  # in the true one before swapping
    COUNTED = 2  # in the true one after swapping, before noise
    TRUE = 3  # of those seen: so in the original
    TRUE_COUNTED = 4  # of those seen: so after swapping
    KEPT = 5  # of those in the original: seen in the published table


class RowKind(IntEnum):
    """The kinds of rows."""

    GROUPS = 0  # all groups with somebody in them
    INDIVIDUAL = 1  # full, one person, and does not follow
    GROUP = 2  # full, two or more, and does not follow
    FOLLOWING = 3  # full, and follows
    NEAR = 4  # near, and does not follow
    ALL_BUT_ONE = 5
    EMPTY = 6  # categories without anybody, of groups with somebody


Tallies = NDArray[np.int64]  # [cross-tabulation, kind, column]


@dataclass(frozen=True, eq=False)
class Grid:
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
    """The cells of a cube with their values: published alone, or with the original and the counted ones."""

    cells: Integers
    values: Integers  # [cell, column]
    crosstab: Places  # which cross-tabulation each belongs to
    own: NDArray[np.bool_]  # whether it is counted here
    wider: NDArray[np.int32]  # [axis, cell]: where the cell with the parent's code stands


@dataclass(frozen=True, eq=False)
class Rows:
    """What one attribute axis shows: tallies, where the telling rows stand, and in which areas."""

    tallies: Tallies
    examples: Places  # [cross-tabulation, number]: the category's cell of telling rows, -1 for none
    areas: Integers  # [node of the area axis, 2]: full rows that do not follow, seen and true


def depths_of(parents: NDArray[np.int32]) -> NDArray[np.int64]:
    """Levels below the total; every node follows its parent."""
    depths = np.zeros(len(parents), dtype=np.int64)
    for node in range(1, len(parents)):
        depths[node] = depths[parents[node]] + 1
    return depths


def side(cells: Integers, values: Integers, grid: Grid) -> Side:
    """Find the cross-tabulation and the wider cells of each cell."""
    crosstab = np.zeros(len(cells), dtype=np.int32)
    wider = np.empty((len(grid.strides), len(cells)), dtype=np.int32)
    for k, (stride, parents) in enumerate(zip(grid.strides, grid.parents, strict=True)):
        along = nodes_along(cells, stride, len(parents))
        crosstab += (grid.depths[k] * grid.radices[k]).astype(np.int32)[along]
        wider[k] = wider_cells(cells, stride, parents)
    return Side(cells, values, crosstab, grid.own(cells, crosstab), wider)


def parts_along(table: Side, grid: Grid, axis: int) -> tuple[Integers, Places, NDArray[np.bool_]]:
    """How many parts a cell has along an axis, listed or not, their cross-tabulation, whether they count here."""
    parents, stride = grid.parents[axis], grid.strides[axis]
    first = np.arange(len(parents))
    first[parents[:0:-1]] = np.arange(
        len(parents) - 1, 0, -1
    )  # a part, where there are any: all are shown alike
    along = nodes_along(table.cells, stride, len(parents))
    number = np.bincount(parents[1:], minlength=len(parents))[along]
    crosstab = table.crosstab + np.int32(grid.radices[axis]) * (number > 0)
    own = grid.own(table.cells + (first[along] - along) * stride, crosstab)
    return number, crosstab, own


def small_counts(table: Side, grid: Grid, below: int) -> Tallies:
    """Cells by count: kind v are those of value v < below, kind 0 all that are not empty."""
    tallies = np.zeros((len(grid.owned), below, len(Column)), dtype=np.int64)
    tally_small(table.values, table.crosstab, table.own, tallies)
    tallies[..., Column.KEPT] = tallies[..., Column.TRUE]  # the same cells, whichever side is asked
    return _doubled(tallies, table.values)


def histogram(table: Side, grid: Grid, below: int) -> Integers:
    """Cells of each cross-tabulation by published value, 0 <= value < below: [cross-tabulation, value]."""
    found = np.zeros((len(grid.owned), below), dtype=np.int64)
    tally_values(table.values, table.crosstab, table.own, found)
    return found


def rows(
    table: Side, grid: Grid, axis: int, share: Fraction, *, same_noise: bool, area: int | None, keep: int
) -> Rows:
    """Judge all rows of one attribute axis.

    ``same_noise``: a group and a category with the same members are published alike, so that a published row is full
    only where both values agree. ``area`` is the axis of the areas, if there is one.
    """
    found = Rows(
        np.zeros((len(grid.owned), len(RowKind), len(Column)), dtype=np.int64),
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
        divided, tells = _level(grid.parents[axis], depth)
        top, where, held, crossed = _largest(table.values, along, line, divided, len(heads))
        marks[:] = 0  # a leaf above this depth was judged at its own
        mark_rows(table.values, along, heads, tells, top, where, held, allowed, marks)
        tally_rows(
            table.values, crosstab, own, table.wider, heads, areas, others, marks, where,
            found.tallies, found.examples, found.areas,
        )  # fmt: skip
        tally_empty(
            table.values, crosstab, own, heads, held, crossed, int(divided.sum()), found.tallies,
        )  # fmt: skip
    return Rows(_doubled(found.tallies, table.values), found.examples, found.areas)


def _doubled(tallies: Tallies, values: Integers) -> Tallies:
    """Where nothing was swapped the counted table is the original one."""
    if values.shape[1] == COUNTED:
        tallies[..., Column.COUNTED] = tallies[..., Column.ORIGINAL]
        tallies[..., Column.TRUE_COUNTED] = tallies[..., Column.TRUE]
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
    """Which nodes divide everybody at a depth (its own and the leaves above), and which of them tell anything.

    A code that is its parent's only one says no more than the parent, and a leaf above was judged at its own depth.
    """
    depths = depths_of(parents)
    children = np.bincount(parents[1:], minlength=len(parents))
    inside = (depths == depth) | ((depths < depth) & (children == 0))
    inside[0] = False
    siblings = np.where(parents >= 0, children[parents], 0)
    return inside, (depths == depth) & (siblings > 1)


Largest = tuple[Integers, Places, Integers, Integers]


def _largest(values: Integers, along: Places, line: Places, inside: NDArray[np.bool_], lines: int) -> Largest:
    """For each row and column of values: largest category, its cell, categories held; and those lost and made."""
    top = np.zeros((lines, values.shape[1]), dtype=np.int64)
    where = np.full((lines, values.shape[1]), -1, dtype=np.int32)
    held = np.zeros((lines, values.shape[1]), dtype=np.int64)
    crossed = np.zeros((lines, 3), dtype=np.int64)
    gather(values, along, line, inside, top, where, held, crossed)
    return top, where, held, crossed
