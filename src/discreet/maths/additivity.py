"""Additivity gaps: how far published totals are from the sums of their parts along an axis, realised and expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.attacks.intervals import AxisFamilies
from discreet.maths.attacks.tuples import Choice
from discreet.maths.cells.alignment import NOWHERE, Integers, Places
from discreet.maths.noise.law import Floats

TILE, SHORT = 512, 8  # totals whose parts are added up at once, and lines that are too short for that


@dataclass(frozen=True, eq=False)
class CellNoise:
    """Mean and variance of the noise of each listed cell, and of an empty cell of each cross-tabulation."""

    moments: Floats  # [kind, 2]
    kind: NDArray[np.int32]  # cell -> which of them it has
    empty: Floats  # [cross-tabulation, 2]
    same_noise: bool  # the same participants have the same noise


@dataclass(frozen=True, eq=False)
class PartsAlong:
    """The parts of the cells of a table along one axis."""

    stride: int
    children: Integers  # node -> its parts, listed or not
    wider: Places  # cell -> the one that it is a part of
    deeper: int  # what is added to the number of a cell's cross-tabulation for that of its parts
    totals: NDArray[np.bool_]  # cross-tabulation -> whether its cells are compared with their parts ..
    own: NDArray[np.bool_]  # .. and whether its cells are counted here as parts
    elsewhere: NDArray[np.bool_] | None = None  # cell -> whether its parts are counted elsewhere all the same


@dataclass(frozen=True, eq=False)
class Gaps:
    """Sums by cross-tabulation of the parts: [totals, open gaps, sum of sizes, sum of squares, expected squares]."""

    sums: Floats
    largest: Integers

    TOTALS, OPEN, SIZE, SQUARE, EXPECTED = range(5)


def gaps(
    cells: Integers,
    published: Integers,
    true: Integers,
    noise: CellNoise,
    crosstab: Places,
    along: PartsAlong,
) -> Gaps:
    """Compare each total that is not zero with the sum of the cells below it along one axis.

    With independent noise the gap has the expected square var(total) + sum var(parts) + (bias of the total - sum of
    biases)^2; with the noise of participants it is zero where one part has all of them.
    """
    found = Gaps(np.zeros((len(noise.empty), 5)), np.zeros(len(noise.empty), dtype=np.int64))
    below = (
        *np.zeros((2, len(cells)), dtype=np.int64),
        np.zeros((len(cells), 2)),
        np.zeros(len(cells), dtype=np.bool_),
    )
    _gather(published, true, noise.moments, noise.kind, along.wider, noise.same_noise, *below)
    elsewhere = np.empty(0, dtype=np.bool_) if along.elsewhere is None else along.elsewhere
    _compare(
        cells, published, true, noise.moments, noise.kind, noise.empty, crosstab,
        along.stride, along.children, along.deeper, along.totals, along.own, elsewhere, *below,
        found.sums, found.largest,
    )  # fmt: skip
    return found


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _gather(
    published: Any,
    true: Any,
    moments: Any,
    kind: Any,
    wider: Any,
    same_noise: Any,
    parts: Any,
    number: Any,
    summed: Any,
    same: Any,
) -> None:
    for i in range(published.size):
        j = wider[i]
        if j == NOWHERE:
            continue
        parts[j] += published[i]
        number[j] += 1
        summed[j, 0] += moments[kind[i], 0]
        summed[j, 1] += moments[kind[i], 1]
        same[j] |= same_noise and true[i] == true[j]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _compare(
    cells: Any,
    published: Any,
    true: Any,
    moments: Any,
    kind: Any,
    empty: Any,
    crosstab: Any,
    stride: Any,
    children: Any,
    deeper: Any,
    totals: Any,
    own: Any,
    elsewhere: Any,
    parts: Any,
    number: Any,
    summed: Any,
    same: Any,
    sums: Any,
    largest: Any,
) -> None:
    node, end = 0, np.int64(-1)  # the node is computed once for each run of cells that share it
    for j in range(published.size):
        if cells[j] >= end:
            node = (cells[j] // stride) % children.size
            end = (cells[j] // stride + 1) * stride
        if true[j] <= 0 or children[node] == 0 or not totals[crosstab[j]]:
            continue
        c = crosstab[j] + deeper
        if not own[c] or (elsewhere.size and elsewhere[j]):
            continue
        gap = abs(published[j] - parts[j])
        unlisted = children[node] - number[j]
        sums[c, 0] += 1
        sums[c, 1] += gap != 0
        sums[c, 2] += gap
        sums[c, 3] += float(gap) * gap
        if not same[j]:
            bias = moments[kind[j], 0] - summed[j, 0] - unlisted * empty[c, 0]
            sums[c, 4] += moments[kind[j], 1] + summed[j, 1] + unlisted * empty[c, 1] + bias * bias
        largest[c] = max(largest[c], gap)


@dataclass(frozen=True, eq=False)
class DenseCells:
    """All cells of a table in the order of its grid, where cells that are not listed are empty and have no noise."""

    published: Floats
    true: Floats
    mean: Floats  # of the noise
    variance: Floats

    @classmethod
    def of(
        cls, room: Floats, cells: Integers, published: Integers, true: Integers, noise: CellNoise
    ) -> DenseCells:
        """The listed cells of a grid and all others; ``room`` is for four numbers of each and is written over."""
        _fill(cells, published, true, noise.moments, noise.kind, room)
        return cls(*room)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _fill(cells: Any, published: Any, true: Any, moments: Any, kind: Any, every: Any) -> None:
    every[:] = 0.0
    for i in range(cells.size):
        at = cells[i]
        every[0, at], every[1, at] = published[i], true[i]
        every[2, at], every[3, at] = moments[kind[i], 0], moments[kind[i], 1]


def dense_gaps(
    table: DenseCells, shape: tuple[int, int, int], families: AxisFamilies, choice: Choice, same_noise: bool
) -> Gaps:
    """``gaps`` along one axis of a grid (before, node, after), of the chosen totals, in one row."""
    found = Gaps(np.zeros((1, 5)), np.zeros(1, dtype=np.int64))
    grids = tuple(grid.reshape(shape) for grid in vars(table).values())
    tuples = (*families.arrays, *choice.arrays, choice.fresh.any(axis=2))
    if shape[2] < SHORT:
        _add_short(*grids, *tuples, same_noise, found.sums[0], found.largest)
    else:
        room = (*np.empty((3, TILE)), np.empty(TILE, dtype=np.bool_))
        _add_long(*grids, *tuples, same_noise, *room, found.sums[0], found.largest)
    return found


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _add_short(
    published: Any,
    true: Any,
    mean: Any,
    variance: Any,
    parents: Any,
    starts: Any,
    children: Any,
    depths: Any,
    before: Any,
    after: Any,
    fresh: Any,
    some: Any,
    same_noise: Any,
    sums: Any,
    largest: Any,
) -> None:
    """Add up the parts of one total after the other: of lines that are too short for tiles."""
    outer, _, inner = published.shape
    for o in range(outer):
        for f in range(parents.size):
            if not some[before[o], depths[f]]:
                continue
            total, chosen = parents[f], fresh[before[o], depths[f]]
            for i in range(inner):
                if true[o, total, i] <= 0 or not chosen[after[i]]:
                    continue
                parts, bias, spread, alone = 0.0, mean[o, total, i], variance[o, total, i], False
                for k in range(starts[f], starts[f + 1]):
                    child = children[k]
                    parts += published[o, child, i]
                    bias -= mean[o, child, i]
                    spread += variance[o, child, i]
                    alone |= true[o, child, i] == true[o, total, i]
                gap = abs(published[o, total, i] - parts)
                _count_gap(gap, 0.0 if same_noise and alone else spread + bias * bias, sums, largest)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _add_long(
    published: Any,
    true: Any,
    mean: Any,
    variance: Any,
    parents: Any,
    starts: Any,
    children: Any,
    depths: Any,
    before: Any,
    after: Any,
    fresh: Any,
    some: Any,
    same_noise: Any,
    shown: Any,
    bias: Any,
    spread: Any,
    same: Any,
    sums: Any,
    largest: Any,
) -> None:
    """Add up the parts of a tile of totals at once, in loops that vectorise."""
    outer, _, inner = published.shape
    for o in range(outer):
        for f in range(parents.size):
            if not some[before[o], depths[f]]:
                continue
            total, chosen = parents[f], fresh[before[o], depths[f]]
            for start in range(0, inner, TILE):
                size = min(TILE, inner - start)
                here = slice(start, start + size)
                own, whole, place = published[o, total, here], true[o, total, here], after[here]
                own_mean, own_variance = mean[o, total, here], variance[o, total, here]
                for i in range(size):
                    shown[i], bias[i], spread[i], same[i] = 0.0, own_mean[i], own_variance[i], False
                for k in range(starts[f], starts[f + 1]):
                    child = children[k]
                    _add_part(
                        published[o, child, here],
                        true[o, child, here],
                        mean[o, child, here],
                        variance[o, child, here],
                        whole,
                        shown,
                        bias,
                        spread,
                        same,
                    )
                for i in range(size):
                    if whole[i] > 0 and chosen[place[i]]:
                        square = 0.0 if same_noise and same[i] else spread[i] + bias[i] * bias[i]
                        _count_gap(abs(own[i] - shown[i]), square, sums, largest)


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _add_part(
    published: Any,
    true: Any,
    mean: Any,
    variance: Any,
    whole: Any,
    shown: Any,
    bias: Any,
    spread: Any,
    same: Any,
) -> None:
    """Add one part of each total of a tile; ``whole`` are their true counts."""
    for i in range(published.size):
        shown[i] += published[i]
        bias[i] -= mean[i]
        spread[i] += variance[i]
    for i in range(published.size):
        same[i] |= true[i] == whole[i]


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _count_gap(gap: Any, expected: Any, sums: Any, largest: Any) -> None:
    sums[0] += 1
    sums[1] += gap != 0
    sums[2] += gap
    sums[3] += gap * gap
    sums[4] += expected
    largest[0] = max(largest[0], np.int64(gap))
